"""Choose the basic window length."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.logical import ShedJoin

#: Below this many rows a basic window costs more to visit than its rows to compare.
MIN_ROWS = 256

_SECOND = 1_000_000


def choose_basic(plan: ShedJoin) -> ShedJoin:
    """A tenth of the longest window, longer where that would hold too few rows; or as the hint says.

    Where load is shed, and in streaming, it is always a tenth: it is the unit in which slices are chosen
    and rows expire, too.
    """
    if plan.hint.basic is not None:
        return replace(plan, basic=plan.hint.basic)
    streams = plan.statistics.streams
    spread = max((s.last for s in streams), default=0) - min((s.first for s in streams), default=0)
    bounds = [bound for row in plan.closed.at for bound in row if bound is not None]
    unbounded = any(bound is None for row in plan.closed.at for bound in row)
    window = spread if unbounded else max([0, *bounds])
    if plan.sheds or plan.streaming:
        return replace(plan, basic=max(1, window // 10))
    densest = max((s.rate for s in streams), default=0.0)
    filled = int(MIN_ROWS / densest * _SECOND) if densest > 0 else _SECOND
    return replace(plan, basic=max(1, window // 10, min(filled, max(spread, 1))))
