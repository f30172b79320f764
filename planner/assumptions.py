"""What is taken for granted of streams before any of their rows was seen."""

from __future__ import annotations

from sparkshed.planner.conditions import usual_selectivity
from sparkshed.planner.statistics import Statistics, StreamStatistics
from sparkshed.sql.block import JoinBlock

#: Rows of each stream, and the microseconds that they take to arrive.
_ROWS = 10_000
_SPREAD = 100_000_000


def assumed(block: JoinBlock) -> Statistics:
    """Streams of equal rates, and selectivities that are usual for the forms of the conditions."""
    count = len(block.streams)
    selectivity: list[list[float | None]] = [[None] * count for _ in range(count)]
    for predicate in block.predicates:
        if len(predicate.streams) == 2:
            i, k = sorted(predicate.streams)
            known = selectivity[i][k]
            sigma = usual_selectivity(predicate) * (1.0 if known is None else known)
            selectivity[i][k] = selectivity[k][i] = sigma
    streams = (StreamStatistics(_ROWS, quantiles=(0, _SPREAD)),) * count
    return Statistics(streams, tuple(map(tuple, selectivity)))
