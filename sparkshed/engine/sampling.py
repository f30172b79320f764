"""Estimates from a sample: join it for real, and count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.operator import JoinOperator
from sparkshed.planner.physical import Direction, Hop, JoinSpec, ScanKernel, StreamExec
from sparkshed.sql.predicate import Predicate, renumber

_BASIC_WINDOWS = 64
_SAMPLE_CHUNK = 1 << 14
_FEWEST_PARTIALS = 20
_MOST_RESULTS = 500_000


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

    With no match seen, half a match is assumed, so that a plan never takes a stream for empty. A
    condition that fails on the sample counts as true: the error belongs to the run, not to planning.
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
    try:
        for batch in ({1: sample[k]}, {0: sample[i]}):
            for _ in operator.process(batch):
                pass
    except EvaluationError:
        return 1.0
    counters = operator.statistics.directions[0]
    return (counters.results or 0.5) / max(1, counters.comparisons)


def hop_fanouts(
    spec: JoinSpec, origin: int, sample: Sequence[pa.Table], shares: Sequence[float]
) -> tuple[float, ...] | None:
    """Rows that each hop of a direction makes of one, measured by joining the sample.

    `shares[i]` is the share of stream i's rows that the sample holds, where it holds any. None when
    a hop found too little to tell, a condition fails, or the sample's join is too large to be worth it.
    """
    operator = JoinOperator(replace(spec, output=(), chunk=_SAMPLE_CHUNK))
    others = {number: table for number, table in enumerate(sample) if number != origin}
    for _ in operator.process(others):
        pass
    counters = operator.statistics.directions[origin]
    try:
        for _ in operator.process({origin: sample[origin]}):
            if counters.results > _MOST_RESULTS:
                return None
    except EvaluationError:
        return None
    fanouts, before = [], sample[origin].num_rows
    for hop, found in zip(spec.directions[origin].hops, counters.partials, strict=True):
        if found < _FEWEST_PARTIALS:
            return None
        fanouts.append(found / before / shares[hop.target])
        before = found
    return tuple(fanouts)
