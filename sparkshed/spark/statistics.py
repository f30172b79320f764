"""Statistics for the planner: two small jobs before the join.

The first counts rows and finds quantiles of their times. The second fetches a sample: rows of a few
stretches of time, thinned evenly, so that rows which could meet are also sampled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from sparkshed.engine.sampling import SampledPair, hop_fanouts
from sparkshed.planner.keys import common_keys
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.planner import Planned, stream_execs
from sparkshed.planner.rules.imply_equalities import imply_equalities
from sparkshed.planner.rules.merge_bands import merge_bands
from sparkshed.planner.statistics import PredicateStatistics, Statistics, StreamStatistics
from sparkshed.spark.catalog import physical_value
from sparkshed.spark.inputs import STREAM, Inputs
from sparkshed.spark.times import at_or_after, micros_of
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.bounds import BoundMatrix
from sparkshed.sql.predicate import Predicate, renumber

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


def gather(block: JoinBlock, bounds: BoundMatrix, inputs: Inputs) -> tuple[Statistics, Sample]:
    """Count the streams, sample them, and estimate the pairs' selectivities."""
    counted = _count(block, inputs)
    sample = _sample(block, bounds, inputs, counted)
    streams = stream_execs(block)
    count = len(streams)
    selectivity: list[list[float | None]] = [[None] * count for _ in range(count)]
    measured: dict[Predicate, PredicateStatistics] = {}
    conditions = merge_bands(ShedJoin.of(block, Statistics(tuple(counted), ()))).predicates
    for i, k in combinations(range(count), 2):
        found = {p: renumber(p, {i: 0, k: 1}) for p in conditions if p.streams == {i, k}}
        if not found:
            continue
        pair = SampledPair.of(streams, bounds.at, (i, k), sample.tables, ansi=block.ansi)
        measured |= {predicate: pair.measure(local) for predicate, local in found.items()}
        if len(found) == 1:
            (sigma,) = (measured[predicate].selectivity for predicate in found)
        else:
            sigma = pair.selectivity(list(found.values()))
        selectivity[i][k] = selectivity[k][i] = sigma
    statistics = Statistics(tuple(counted), tuple(map(tuple, selectivity)), predicates=measured)
    return _with_top_shares(block, statistics, sample), sample


def refine(planned: Planned, sample: Sample) -> Statistics:
    """The statistics with the fan-out of every hop of the chosen orders, measured on the sample."""
    spec = planned.physical.spec
    fanouts = tuple(
        hop_fanouts(spec, origin, sample.tables, sample.shares) for origin in range(len(spec.streams))
    )
    return replace(planned.logical.statistics, fanouts=fanouts)


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
        column, type_ = F.col(f"c{stream.time}"), stream.inputs[stream.time].type
        conditions: list[Column] = [
            at_or_after(column, start, type_) & ~at_or_after(column, end + 1, type_)
            for start, end in stretches
        ]
        kept = frame.where(reduce(Column.__or__, conditions)) if conditions else frame.where("false")
        expected = sum(statistics.rows_between(start, end) for start, end in stretches)
        share = min(1.0, SAMPLE_ROWS / max(1.0, expected))
        frames.append(kept.where(F.rand(block.hint.seed) < share) if share < 1 else kept)
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


def _with_top_shares(block: JoinBlock, statistics: Statistics, sample: Sample) -> Statistics:
    """How much of each stream its most frequent key makes up: hashing cannot split that."""
    keys = common_keys(imply_equalities(ShedJoin.of(block, statistics)))
    if keys is None:
        return statistics
    streams = []
    for stream, table, key in zip(statistics.streams, sample.tables, keys, strict=True):
        values = table.column(key).drop_null()
        top = 0.0
        if len(values) and not pa.types.is_nested(values.type):
            counts = pc.value_counts(values).field("counts")
            top = pc.max(counts).as_py() / len(values)
        streams.append(replace(stream, top_share=top))
    return replace(statistics, streams=tuple(streams))
