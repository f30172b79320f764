"""Statistics for the planner, from counts of the streams and a sample of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.sampling import SampledPair, hop_fanouts
from sparkshed.engine.threads import one_thread
from sparkshed.planner.keys import common_keys
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.planner import Planned, stream_execs
from sparkshed.planner.rules.imply_equalities import imply_equalities
from sparkshed.planner.rules.merge_bands import merge_bands
from sparkshed.planner.statistics import PredicateStatistics, Statistics, StreamStatistics
from sparkshed.spark.inputs import Inputs
from sparkshed.spark.sampling import Sample, look
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.bounds import BoundMatrix
from sparkshed.sql.predicate import Predicate, renumber


def gather(block: JoinBlock, bounds: BoundMatrix, inputs: Inputs) -> tuple[Statistics, Sample]:
    """Count the streams, sample them, and estimate the pairs' selectivities."""
    counted, sample = look(block, bounds, inputs)
    with one_thread():
        statistics = _measured(block, bounds, counted, sample)
    return _with_top_shares(block, statistics, sample), sample


def _measured(
    block: JoinBlock, bounds: BoundMatrix, counted: Sequence[StreamStatistics], sample: Sample
) -> Statistics:
    """The conditions of all pairs of streams, measured on the sample."""
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
    return Statistics(tuple(counted), tuple(map(tuple, selectivity)), predicates=measured)


def refine(planned: Planned, sample: Sample) -> Statistics:
    """The statistics with the fan-out of every hop of the chosen orders, measured on the sample."""
    spec = planned.physical.spec
    with one_thread():
        fanouts = tuple(
            hop_fanouts(spec, origin, sample.tables, sample.shares) for origin in range(len(spec.streams))
        )
    return replace(planned.logical.statistics, fanouts=fanouts)


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
