"""What is looked at before a join is planned: counts, quantiles of times, and a sample of the rows.

Small inputs that are in memory are fetched whole, in one job. Of others one job counts rows and finds
quantiles of their times, and a second one fetches rows of a few stretches of time, thinned evenly, so that
rows which could meet are also sampled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from sparkshed.engine.arrays import Ints
from sparkshed.engine.decode import decode_times, normalise
from sparkshed.planner.statistics import StreamStatistics
from sparkshed.spark.catalog import physical_value
from sparkshed.spark.inputs import STREAM, Inputs
from sparkshed.spark.times import at_or_after, micros_of
from sparkshed.sql.block import JoinBlock, Stream
from sparkshed.sql.bounds import BoundMatrix

#: Inputs that are known to have no more bytes than this are fetched whole.
SMALL_BYTES = 8_000_000
#: Rows of each stream that are looked at.
SAMPLE_ROWS = 1_000
STRETCHES = 2
QUANTILES = 32

#: Times as what Python can hold whatever the year: microseconds, days, or a length of time.
_NUMBERS = {
    "timestamp": F.unix_micros,
    "date": F.unix_date,
    "timestamp_ntz": lambda time: time - F.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'"),
}


@dataclass(frozen=True)
class Sample:
    """Sampled rows of each stream, and the share of a stretch's rows that was kept."""

    tables: tuple[pa.Table, ...]
    shares: tuple[float, ...]


def look(block: JoinBlock, bounds: BoundMatrix, inputs: Inputs) -> tuple[list[StreamStatistics], Sample]:
    """Count the streams, and sample them."""
    sizes = [_known_bytes(frame._jdf.queryExecution().optimizedPlan()) for frame in inputs.frames]
    if sum(SMALL_BYTES + 1 if size is None else size for size in sizes) <= SMALL_BYTES:
        tables = _by_stream(inputs.union(inputs.frames).toArrow(), inputs)
        return _look_at(block, bounds, tables)
    counted = _count(block, inputs)
    return counted, _sample(block, bounds, inputs, counted)


#: Parts of a plan that never make more rows than they get, and what rows they can start from.
_SHRINKING = ("Project", "Filter", "Union", "SubqueryAlias", "GlobalLimit", "LocalLimit")
_IN_MEMORY = ("LocalRelation", "Range")


def _known_bytes(plan: Any) -> int | None:
    """Size of what a plan of Spark returns, if that is known; None for files and anything that may grow."""
    name = plan.nodeName()
    cached = name == "InMemoryRelation" and plan.cacheBuilder().isCachedColumnBuffersLoaded()
    if not cached and name not in _IN_MEMORY:
        children = plan.children()
        parts = [children.apply(number) for number in range(children.size())]
        if name not in _SHRINKING or any(_known_bytes(part) is None for part in parts):
            return None
    return int(plan.stats().sizeInBytes())


def _look_at(
    block: JoinBlock, bounds: BoundMatrix, tables: Sequence[pa.Table]
) -> tuple[list[StreamStatistics], Sample]:
    """The same figures from whole streams."""
    times = [_times(stream, table) for stream, table in zip(block.streams, tables, strict=True)]
    counted = [
        StreamStatistics(table.num_rows, table.num_rows - len(found), _quantiles(found))
        for table, (_, found) in zip(tables, times, strict=True)
    ]
    stretches = _stretches(counted, bounds)
    generator = np.random.default_rng(block.hint.seed or 0)
    samples, shares = [], []
    for table, (places, found) in zip(tables, times, strict=True):
        inside = np.zeros(len(found), np.bool_)
        for start, end in stretches:
            inside |= (found >= start) & (found <= end)
        rows = places[inside]
        share = min(1.0, SAMPLE_ROWS / max(1, len(rows)))
        if share < 1:
            rows = np.sort(generator.choice(rows, SAMPLE_ROWS, replace=False))
        samples.append(table.take(pa.array(rows)))
        shares.append(share)
    return counted, Sample(tuple(samples), tuple(shares))


def _times(stream: Stream, table: pa.Table) -> tuple[Ints, Ints]:
    """Which rows have a time, and these times."""
    assert stream.time is not None
    type_ = stream.inputs[stream.time].type
    column = normalise(table.column(stream.time).combine_chunks(), type_)
    places = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return places, decode_times(column.drop_null(), type_)


def _quantiles(times: Ints) -> tuple[int, ...]:
    if not len(times):
        return ()
    steps = np.arange(QUANTILES + 1) * (len(times) - 1) // QUANTILES
    return tuple(np.sort(times).take(steps).tolist())


def _count(block: JoinBlock, inputs: Inputs) -> list[StreamStatistics]:
    parts = [
        frame.select(F.lit(number).alias("n"), F.col(f"c{stream.time}").alias("t"))
        for number, (frame, stream) in enumerate(zip(inputs.frames, block.streams, strict=True))
    ]
    type_ = block.streams[0].inputs[block.streams[0].time or 0].type
    quantiles: Column = F.percentile_approx("t", [step / QUANTILES for step in range(QUANTILES + 1)], 1000)
    quantiles = F.transform(quantiles, _NUMBERS[type_])
    rows = (
        reduce(DataFrame.unionAll, parts)
        .groupBy("n")
        .agg(F.count("*").alias("total"), F.count("t").alias("timed"), quantiles.alias("q"))
        .collect()
    )
    counted = [StreamStatistics(0)] * len(parts)
    for row in rows:
        times = tuple(micros_of(physical_value(value), type_) for value in row.q or ())
        counted[row.n] = StreamStatistics(row.total, row.total - row.timed, times)
    return counted


def _stretches(counted: Sequence[StreamStatistics], bounds: BoundMatrix) -> list[tuple[int, int]]:
    """Stretches of time to sample from: all of it when it is short, else some around busy times."""
    timed = [s for s in counted if s.quantiles]
    if not timed:
        return []
    first, last = min(s.first for s in timed), max(s.last for s in timed)
    windows = [bound for row in bounds.at for bound in row]
    if any(window is None for window in windows):
        return [(first, last)]
    length = 2 * max(1, *(abs(window) for window in windows if window is not None))
    if length * STRETCHES >= last - first:
        return [(first, last)]
    # Evenly placed among the rows, not in time, so that a stretch is unlikely to be empty.
    busiest = max(timed, key=lambda s: s.rows).quantiles
    middles = [busiest[(2 * n + 1) * (len(busiest) - 1) // (2 * STRETCHES)] for n in range(STRETCHES)]
    return [(middle - length // 2, middle + length // 2) for middle in middles]


def _sample(
    block: JoinBlock, bounds: BoundMatrix, inputs: Inputs, counted: Sequence[StreamStatistics]
) -> Sample:
    stretches = _stretches(counted, bounds)
    frames, shares = [], []
    for frame, stream, statistics in zip(inputs.frames, block.streams, counted, strict=True):
        assert stream.time is not None
        column, type_ = f"c{stream.time}", stream.inputs[stream.time].type
        conditions = [
            f"({at_or_after(column, start, type_)} AND NOT {at_or_after(column, end + 1, type_)})"
            for start, end in stretches
        ]
        kept = frame.where(" OR ".join(conditions) or "false")
        expected = sum(statistics.rows_between(start, end) for start, end in stretches)
        share = min(1.0, SAMPLE_ROWS / max(1.0, expected))
        frames.append(kept.where(F.rand(block.hint.seed or 0) < share) if share < 1 else kept)
        shares.append(share)
    thinned = [_thinned(table) for table in _by_stream(inputs.union(frames).toArrow(), inputs)]
    return Sample(
        tuple(table for table, _ in thinned),
        tuple(share / step for share, (_, step) in zip(shares, thinned, strict=True)),
    )


def _thinned(table: pa.Table) -> tuple[pa.Table, int]:
    """Every step-th row, and the step: a burst can bring more rows than expected."""
    step = max(1, -(-table.num_rows // (2 * SAMPLE_ROWS)))
    return (table.take(pa.array(range(0, table.num_rows, step))) if step > 1 else table), step


def _by_stream(table: pa.Table, inputs: Inputs) -> list[pa.Table]:
    """The union's rows by stream, each with its own columns."""
    numbers = table.column(STREAM)
    tables = []
    for stream, places in enumerate(inputs.slots.places):
        rows = table.filter(pc.equal(numbers, stream))
        columns = [rows.column(f"s{place}").combine_chunks() for place in places]
        tables.append(pa.table(columns, names=[f"c{c}" for c in range(len(places))]))
    return tables
