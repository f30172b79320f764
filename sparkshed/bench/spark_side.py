"""The workloads on Spark: through sparkshed, and by Spark's own join."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import sparkshed
from sparkshed.bench.cases import CASES, Case
from sparkshed.bench.timing import count_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HINT = "SHED(exact)"


@contextmanager
def views(spark: SparkSession, case: Case, tables: Sequence[pa.Table]) -> Iterator[None]:
    """The streams as cached views."""
    frames = []
    for number, table in enumerate(tables, 1):
        frame = spark.createDataFrame(table).cache()
        frame.count()
        frame.createOrReplaceTempView(f"{case.relation}{number}")
        frames.append(frame)
    try:
        yield
    finally:
        for number, frame in enumerate(frames, 1):
            frame.unpersist(blocking=True)
            spark.catalog.dropTempView(f"{case.relation}{number}")


def joins(spark: SparkSession) -> dict[str, Callable[[Case], int]]:
    """The engines on Spark, from the text of the statement to the last row."""
    return {
        "sparkshed-sql": lambda case: count_rows(sparkshed.query(spark, case.sql(HINT))),
        "spark": lambda case: count_rows(spark.sql(case.sql())),
        "spark-tuned": lambda case: count_rows(spark.sql(fastest_sql(case))),
    }


def warm_up(spark: SparkSession) -> None:
    """Run both sides once on little data, so that no one pays for starting up."""
    case = CASES[0].scaled(0.1)
    with views(spark, case, case.tables()):
        for join in joins(spark).values():
            join(case)


def save_plan(spark: SparkSession, case: Case, path: Path) -> None:
    """Plan the join as `spark.sql` does, and keep the operator's specification and the master stream."""
    from sparkshed.spark.runner import Statement, _Road
    from sparkshed.sql.outline import outline

    text = case.sql(HINT)
    found = outline(text)
    assert found is not None
    with _Road(Statement(spark, text, None, {}, spark.sql), found) as road:
        (planned,) = road.plan_blocks()
    path.write_bytes(pickle.dumps((planned.physical.spec, planned.physical.layout.master)))


def fastest_sql(case: Case) -> str:
    """The join in the form that is fastest for Spark's own join.

    Differences of microseconds are several times cheaper than adding an interval to a timestamp.
    """
    if case.kind in _ITEMS:
        return _by_items(case)
    head, _ = case.sql().split("\nWHERE ")
    aliases = re.findall(rf"{case.relation}\d (\w+)", head)
    # A difference of values is compared with both ends: cheaper than calling abs.
    bounds = rf"\1 BETWEEN \2 - {case.limit:g} AND \2 + {case.limit:g}"
    head = re.sub(r"abs\((\S+) - (\S+)\) <= \S+", bounds, head)
    return f"{head}\nWHERE {' AND '.join(_close(a, b, case) for a, b in combinations(aliases, 2))}"


def _close(a: str, b: str, case: Case) -> str:
    return f"abs(unix_micros({a}.ts) - unix_micros({b}.ts)) <= {round(case.window * 1e6)}"


#: Columns of the exploded items, what makes a pair a result.
_ITEMS = {
    "overlap": ("explode(s) AS k", "count(*)"),
    "weighted": ("explode(w) AS (k, x)", "sum(a.x * b.x)"),
}


def _by_items(case: Case) -> str:
    """One row per item, joined on equal items and counted: far fewer pairs than comparing all sets."""
    items, measure = _ITEMS[case.kind]
    return f"""
        WITH a AS (SELECT id, ts, {items} FROM {case.relation}1),
             b AS (SELECT id, ts, {items} FROM {case.relation}2)
        SELECT a.id AS id1, b.id AS id2 FROM a JOIN b ON a.k = b.k AND {_close("a", "b", case)}
        GROUP BY a.id, b.id HAVING {measure} >= {case.limit:g}"""
