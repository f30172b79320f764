"""Windows of rows on static tables: the join over the last n rows, and a part of it for less work."""

from __future__ import annotations

from collections import Counter, deque

import pytest

import sparkshed
from sparkshed.workloads.keyed import keyed_tables

ROWS = 60


@pytest.fixture(scope="module")
def streams(spark):
    tables = keyed_tables(50, 20, keys=12, skew=1.0, seeds=(1, 2))
    for number, table in enumerate(tables, 1):
        spark.createDataFrame(table).createOrReplaceTempView(f"rows{number}")
    return tables


def naive(tables):
    """The join over the last rows of each stream, row by row in the order of time."""
    rows = [
        (time, stream, key, number)
        for stream, table in enumerate(tables)
        for time, key, number in zip(*(table.column(c).to_pylist() for c in ("ts", "k", "id")), strict=True)
    ]
    windows, found = (deque(maxlen=ROWS), deque(maxlen=ROWS)), Counter()
    for _, stream, key, number in sorted(rows, key=lambda row: row[:2]):
        for other_key, other in windows[1 - stream]:
            if key == other_key:
                found[(number, other) if stream == 0 else (other, number)] += 1
        windows[stream].append((key, number))
    return found


def run(spark, *options):
    hint = ", ".join(["dual", f"'rows={ROWS}'", *(f"'{option}'" for option in options)])
    text = f"SELECT /*+ SHED({hint}) */ a.id AS i, b.id AS j FROM rows1 a JOIN rows2 b ON a.k = b.k"
    return Counter(map(tuple, sparkshed.query(spark, text).collect()))


def test_the_join_over_the_last_rows_and_a_part_of_it(spark, streams):
    full = naive(streams)
    assert run(spark) == full
    part = run(spark, "budget=0.4", "seed=3")
    assert part <= full and 0.1 * full.total() < part.total() < full.total()
    assert part == run(spark, "budget=0.4", "seed=3")
