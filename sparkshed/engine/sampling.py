"""Estimates from a sample: join it for real, and count."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.planner.physical import Direction, Hop, JoinSpec, ScanKernel, StreamExec
from sparkshed.sql.predicate import Predicate, renumber

_BASIC_WINDOWS = 64


def pair_selectivity(
    streams: Sequence[StreamExec],
    bounds: Sequence[Sequence[int | None]],
    pair: tuple[int, int],
    predicates: Sequence[Predicate],
    sample: Sequence[pa.Table],
    *,
    ansi: bool,
) -> float:
    """σ of two streams: matches per pair of sampled rows within the time bound.

    With no match seen, half a match is assumed, so that a plan never takes a stream for empty.
    """
    i, k = pair
    checks = tuple(renumber(predicate, {i: 0, k: 1}) for predicate in predicates)
    longest = max((abs(b) for b in (bounds[i][k], bounds[k][i]) if b is not None), default=1)
    spec = JoinSpec(
        streams=(streams[i], streams[k]),
        bounds=((0, bounds[i][k]), (bounds[k][i], 0)),
        directions=(
            Direction(0, (Hop(1, ScanKernel(), checks),)),
            Direction(1, (Hop(0, ScanKernel(), checks),)),
        ),
        basic=max(1, longest // _BASIC_WINDOWS, 1_000_000),
        output=(),
        ansi=ansi,
    )
    operator = JoinOperator(spec)
    for batch in ({1: sample[k]}, {0: sample[i]}):
        for _ in operator.process(batch):
            pass
    counters = operator.statistics.directions[0]
    return (counters.results or 0.5) / max(1, counters.comparisons)
