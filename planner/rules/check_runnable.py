"""Refuse plans that cannot run, and name the fix."""

from __future__ import annotations

from sparkshed.planner.keys import common_keys
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.strategies import KINDS
from sparkshed.sql.errors import BoundError, PlanError


def check_runnable(plan: ShedJoin) -> ShedJoin:
    """The last rule: everything that would fail on a worker fails here instead."""
    kind = KINDS.get(plan.hint.strategy)
    if kind is not None and kind.most_streams is not None and len(plan.names) > kind.most_streams:
        msg = (
            f"strategy `{plan.hint.strategy}` joins {kind.most_streams} streams, and this join has "
            f"{len(plan.names)}. Use SHED(grubjoin) for joins of more streams."
        )
        raise PlanError(msg)
    for stream, statistics in zip(plan.block.streams, plan.statistics.streams, strict=True):
        if stream.strict_time and statistics.null_times:
            msg = (
                f"stream `{stream.name}` has {statistics.null_times} rows without {stream.time_text}, and "
                f"only greatest/least bound it. These skip NULLs, so such a row would join without any time "
                f"bound. Add {stream.time_text} IS NOT NULL to WHERE."
            )
            raise BoundError(msg)
    if plan.hint.diffusion.routing == "hash" and common_keys(plan) is None:
        msg = (
            "SHED option `diffuse=hash` needs one key that is equal in all streams, and this join has none. "
            "Use `atr` or `auto`, or join every stream by equality on the same key."
        )
        raise PlanError(msg)
    return plan
