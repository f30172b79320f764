"""Parameters of hinted statements: `:name`, `?`, and DataFrames in braces."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import sparkshed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    for number, name in enumerate(("left_side", "right_side"), 1):
        frame = spark.range(0, 60, 1, 1).selectExpr(
            "id",
            f"timestamp_seconds(1700000000 + pmod(hash(id, {number}), 50)) AS ts",
            f"pmod(hash(id, {number}, 1), 5) AS k",
        )
        frame.createOrReplaceTempView(name)
    return spark


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (
            "SELECT /*+ SHED(exact) */ l.id, r.id, :tag AS tag FROM left_side l JOIN right_side r "
            "ON abs(l.ts - r.ts) <= :reach AND l.k - r.k < :gap WHERE l.k > :low",
            {"tag": "x", "reach": datetime.timedelta(seconds=3), "gap": 2, "low": 1},
        ),
        (
            "SELECT /*+ SHED(exact) */ l.id, r.id, ? AS tag FROM left_side l JOIN right_side r "
            "ON abs(l.ts - r.ts) <= ? AND l.k - r.k < ? WHERE l.k > ? AND '?' <> 'a' LIMIT 1000",
            ["x", datetime.timedelta(seconds=3), 2, 1],
        ),
        (
            "WITH l AS (SELECT * FROM left_side WHERE k < :top) SELECT /*+ SHED(exact) */ l.id, r.k FROM l "
            "JOIN (SELECT * FROM right_side WHERE id % :step = 0) r "
            "ON l.ts BETWEEN r.ts AND r.ts + make_dt_interval(0, 0, 0, :s)",
            {"top": 4, "step": 2, "s": 5},
        ),
    ],
    ids=["named", "positional", "everywhere"],
)
def test_parameters(session: SparkSession, text: str, args: Any) -> None:
    expected = Counter(session.sql(text, args).collect())
    assert expected
    assert Counter(sparkshed.query(session, text, args).collect()) == expected


def test_frames_in_braces(session: SparkSession) -> None:
    join = "{first} l JOIN right_side r ON l.ts = r.ts AND l.k >= {low}"
    text = f"SELECT /*+ SHED(exact) */ l.id, r.id FROM {join}"
    first = session.table("left_side").where("k < 4")
    expected = Counter(session.sql(text, first=first, low=1).collect())
    assert expected
    assert Counter(sparkshed.query(session, text, first=first, low=1).collect()) == expected


def test_without_a_hint_the_text_is_sparks(session: SparkSession) -> None:
    assert sparkshed.query(session, "SELECT :x /* SHED(exact) */ AS x", {"x": 3}).collect()[0].x == 3
