"""Shedding on static tables: a part of Spark's answer, chosen well, for a share of the work."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

import sparkshed
from sparkshed.workloads.cameras import aligned, camera_sql, camera_streams, camera_table

WINDOW = "abs(c1.ts - c2.ts) <= INTERVAL 20 SECONDS"
#: No index serves this condition, so probing less is doing less.
SCANNED = (
    "SELECT {hint} c1.id AS i, c2.id AS j FROM cam1 c1 JOIN cam2 c2 "
    f"ON (c1.x - c2.x) * (c1.x - c2.x) <= 4 AND {WINDOW}"
)
EQUAL = (
    "SELECT {hint} c1.id AS i, c2.id AS j FROM cam1 c1 JOIN cam2 c2 "
    f"ON round(c1.x / 20) = round(c2.x / 20) AND {WINDOW}"
)
ONE_SIDED = (
    "SELECT {hint} c1.id AS i, c2.id AS j FROM cam1 c1 JOIN cam2 c2 "
    "ON abs(c1.x - c2.x) <= 3 AND c1.ts <= c2.ts + INTERVAL 5 SECONDS"
)


@pytest.fixture(scope="module")
def cameras(spark):
    lags = aligned(3)
    for number, stream in enumerate(camera_streams(40, 60, lags.tau, lags.kappa), 1):
        spark.createDataFrame(camera_table(stream)).cache().createOrReplaceTempView(f"cam{number}")
    return spark


def statement(text: str, *options: str) -> str:
    hint = f"/*+ SHED({', '.join([options[0], *(repr(o) for o in options[1:])])}) */" if options else ""
    return text.format(hint=hint)


def counted(frame) -> Counter:
    """Rows by way of Arrow, because there are many."""
    return Counter(zip(*(column.to_pylist() for column in frame.toArrow().columns), strict=True))


def rows(spark, text: str) -> Counter:
    return counted(sparkshed.query(spark, text))


@pytest.fixture(scope="module")
def answer(cameras):
    """Spark's answer to a statement, which is asked for once."""
    return cache(lambda text: rows(cameras, statement(text)))


@pytest.mark.parametrize("strategy", ["grubjoin", "randomdrop", "adaptive"])
@pytest.mark.parametrize("text", [SCANNED, EQUAL, ONE_SIDED], ids=["scanned", "equal", "one-sided"])
def test_the_output_is_a_part_of_sparks_answer(cameras, answer, strategy, text):
    whole = answer(text)
    # Aligned rows match within a second. Every row of `adaptive` probes all of that for 0.3 of the work where
    # nothing is indexed, so it gets less.
    budget = "budget=0.03" if (strategy, text) == ("adaptive", SCANNED) else "budget=0.3"
    found = rows(cameras, statement(text, strategy, budget, "seed=5"))
    assert found < whole
    assert 0.05 * sum(whole.values()) < sum(found.values())
    assert rows(cameras, statement(text, strategy, "budget=1")) == whole


def test_three_streams(cameras, answer):
    text = camera_sql(3).replace("SELECT ", "SELECT {hint} ", 1)
    whole = answer(text)
    found = rows(cameras, statement(text, "grubjoin", "budget=0.5", "seed=5", "diffuse=atr:3"))
    assert found <= whole
    assert 0.3 * sum(whole.values()) < sum(found.values()) < sum(whole.values())


def test_a_harvest_finds_far_more_than_its_share_of_the_work(cameras, answer):
    """Results of aligned streams lie close together in time, and the pilot finds that out."""
    text = statement(SCANNED, "grubjoin", "budget=0.2", "seed=5")
    share = sum(rows(cameras, text).values()) / sum(answer(SCANNED).values())
    plan = sparkshed.explain(cameras, text)
    expected = float(re.search(r"completeness=([\d.]+)", plan)[1])
    assert share > 0.6
    assert share == pytest.approx(expected, abs=0.15)
    assert re.search(r"Expected: work=0\.(19|2)\d*, ", plan)
    # The slices next to the probing row, on both sides of it, and few others.
    strip = re.search(r"\[([.+#]*)\|([.+#]*)\]", plan)
    assert strip[1].endswith("#") and strip[2].startswith("#")
    assert (strip[1] + strip[2]).count(".") >= 10
    dropped = rows(cameras, statement(SCANNED, "randomdrop", "budget=0.2", "seed=5"))
    assert sum(dropped.values()) < 0.5 * share * sum(answer(SCANNED).values())


def test_a_seed_makes_a_run_repeatable(cameras):
    text = statement(SCANNED, "grubjoin", "budget=0.1", "seed=7", "diffuse=none")
    first = rows(cameras, text)
    assert rows(cameras, text) == first
    assert rows(cameras, text.replace("seed=7", "seed=8")) != first
    frame = sparkshed.query(cameras, statement(SCANNED, "grubjoin", "budget=0.1", "diffuse=none"))
    assert counted(frame) == counted(frame)


@pytest.mark.parametrize(
    "options",
    [
        ("harvest=greedy", "shred=0.3"),
        ("harvest=greedy_reverse:best_output_per_cost",),
        ("harvest=greedy_double", "histograms=per_stream"),
        ("harvest=exhaustive", "basic=7 seconds"),
        ("order=c1:c2; c2:c1", "basic=1 hour"),
    ],
    ids=lambda options: options[0],
)
def test_every_option_runs(cameras, answer, options):
    found = rows(cameras, statement(SCANNED, "grubjoin", "budget=0.4", "seed=5", *options))
    whole = answer(SCANNED)
    assert found <= whole
    assert sum(found.values()) > 0.2 * sum(whole.values())


def test_no_rows_and_few_rows(cameras, answer):
    for condition in ("c1.id < 0", "c1.id = 7", "c1.id = 7 AND c2.id < 300"):
        text = SCANNED + f" WHERE {condition}"
        found = rows(cameras, statement(text, "grubjoin", "budget=0.5", "seed=5"))
        assert found <= answer(text)


@pytest.mark.parametrize("strategy", ["grubjoin", "randomdrop", "adaptive"])
def test_a_budget_of_almost_nothing_finds_almost_nothing(cameras, answer, strategy):
    whole = answer(SCANNED)
    found = rows(cameras, statement(SCANNED, strategy, "budget=1e-9", "seed=5"))
    assert found <= whole
    assert sum(found.values()) < 0.02 * sum(whole.values())


@pytest.mark.parametrize(
    ("text", "options"),
    [
        # With 300 rows it finds everything: aligned cameras, and it learns that new rows are worth the most.
        (SCANNED, ("gdj", "memory=30")),
        (EQUAL, ("prob", "memory=40 KB", "diffuse=hash:2")),
        (SCANNED, ("grubjoin", "memory=300", "evict=lru", "budget=0.5")),
        (SCANNED, ("gdj", "memory=30", "credits=method1:0.3")),
        (EQUAL, ("prob", "memory=300", "counts=sketch:64")),
        (SCANNED, ("grubjoin", "memory=300", "evict=gdj", "budget=0.5")),
        (SCANNED, ("randomdrop", "memory=300", "evict=gdj", "budget=0.5")),
        (EQUAL, ("gdj", "memory=300", "sample=0.5")),
        (EQUAL, ("lru", "memory=300", "buffers=proportional", "sample=auto")),
    ],
    ids=[
        "rows",
        "bytes",
        "work, too",
        "a rule of the paper",
        "a sketch",
        "harvest and credits",
        "dropping and credits",
        "a sample",
        "parts",
    ],
)
def test_windows_with_a_limit(cameras, answer, text, options):
    whole = answer(text)
    found = rows(cameras, statement(text, *options, "seed=5"))
    assert found <= whole
    assert 0.02 * sum(whole.values()) < sum(found.values()) < sum(whole.values())
    assert rows(cameras, statement(text, *options, "seed=5")) == found
