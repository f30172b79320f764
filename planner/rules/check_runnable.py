"""Refuse plans that cannot run, and name the fix."""

from __future__ import annotations

from sparkshed.planner.keys import common_keys
from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.errors import BoundError, PlanError
from sparkshed.sql.predicate import Equality


def check_runnable(plan: ShedJoin) -> ShedJoin:
    """The last rule: everything that would fail on a worker fails here instead."""
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
    if plan.hint.rows is not None:
        _check_rows(plan)
    return plan


def _check_rows(plan: ShedJoin) -> None:
    """Windows of rows are for two streams that are joined by equality."""
    if len(plan.names) != 2:
        msg = (
            f"strategy `dual` joins two streams, and {len(plan.names)} were found. "
            "Use `grubjoin`, with time bounds between the streams."
        )
        raise PlanError(msg)
    if not any(isinstance(predicate.form, Equality) for predicate in plan.linking):
        msg = (
            f"strategy `dual` needs an equality between `{plan.names[0]}` and `{plan.names[1]}`, such as "
            f"{plan.names[0]}.k = {plan.names[1]}.k: it judges rows by how often their value occurs. Use "
            "`grubjoin` or `adaptive` for other conditions, with time bounds between the streams."
        )
        raise PlanError(msg)
