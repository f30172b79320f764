"""Choose the basic window length."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.bounds import duration_text
from sparkshed.sql.errors import HintError

#: Below this many rows a basic window costs more to visit than its rows to compare.
MIN_ROWS = 256

#: Slices of a window at most, where load is shed: something is learned of each of them.
MOST_SLICES = 1000

_SECOND = 1_000_000


def choose_basic(plan: ShedJoin) -> ShedJoin:
    """A tenth of the longest window, longer where that would hold too few rows; or as the hint says.

    Where load is shed, and in streaming, it is always a tenth: it is the unit in which slices are chosen
    and rows expire, too.
    """
    if plan.hint.basic is not None:
        return replace(plan, basic=_checked(plan, plan.hint.basic))
    streams = plan.statistics.streams
    spread = max((s.last for s in streams), default=0) - min((s.first for s in streams), default=0)
    bounds = [bound for row in plan.closed.at for bound in row if bound is not None]
    unbounded = any(bound is None for row in plan.closed.at for bound in row)
    window = spread if unbounded else max([0, *bounds])
    if plan.hint.rows is not None:
        return replace(plan, basic=max(1, min(window, _lasts(plan, plan.hint.rows)) // 10))
    if plan.sheds or plan.streaming:
        return replace(plan, basic=max(1, window // 10))
    densest = max((s.rate for s in streams), default=0.0)
    filled = int(MIN_ROWS / densest * _SECOND) if densest > 0 else _SECOND
    return replace(plan, basic=max(1, window // 10, min(filled, max(spread, 1))))


def _lasts(plan: ShedJoin, rows: int) -> int:
    """How long so many rows of the fastest stream last, in microseconds."""
    rate = max((own.rate for own in plan.statistics.streams), default=0.0)
    return int(rows / rate * _SECOND) if rate > 0 else _SECOND


def _checked(plan: ShedJoin, basic: int) -> int:
    """Refuse basic windows of which there would be too many to learn from."""
    bounds = [bound for row in plan.closed.at for bound in row if bound is not None]
    longest = max([0, *bounds])
    if plan.sheds and longest > MOST_SLICES * basic:
        msg = (
            f"SHED option `basic` of {duration_text(basic)} cuts a window of {duration_text(longest)} into "
            f"{longest // basic:,} slices, and at most {MOST_SLICES:,} can be learned of. Write a longer "
            f"one, for example 'basic={-(-longest // (100 * 1000))} ms'."
        )
        raise HintError(msg)
    return basic
