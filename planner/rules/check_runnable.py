"""Refuse plans that cannot run, and name the fix."""

from __future__ import annotations

from sparkshed.planner.keys import common_keys
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.strategies import KINDS
from sparkshed.sql.errors import BoundError, PlanError, listing
from sparkshed.sql.predicate import Equality


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
    _check_memory(plan)
    if plan.hint.rows is not None:
        _check_rows(plan)
    return plan


def _check_memory(plan: ShedJoin) -> None:
    memory, hint = plan.hint.memory, plan.hint
    if memory is None:
        return
    if hint.diffusion.routing == "atr":
        msg = (
            "SHED option `diffuse=atr` copies rows to several hosts, which would have to share the memory. "
            "Use `hash` where all streams have a common key, or `none`."
        )
        raise PlanError(msg)
    if hint.diffusion.hosts is not None and hint.diffusion.routing == "auto" and common_keys(plan) is None:
        msg = (
            f"SHED option `diffuse={hint.diffusion.text}` would divide the memory among hosts, which takes "
            "one key that is equal in all streams, and this join has none. Use `none`, or remove it."
        )
        raise PlanError(msg)
    parts = hint.diffusion.hosts or 1
    if memory.unit == "rows" and memory.amount < len(plan.names) * parts:
        where = "" if parts == 1 else f" on each of {parts} hosts"
        msg = (
            f"SHED option `memory={memory.amount}` is too little: a join of {len(plan.names)} streams "
            f"needs one row of each{where}. Allow {len(plan.names) * parts} rows or more."
        )
        raise PlanError(msg)
    if hint.evict == "prob":
        linked = {s for p in plan.linking if isinstance(p.form, Equality) for s in p.streams}
        alone = [name for number, name in enumerate(plan.names) if number not in linked]
        if alone:
            msg = (
                f"policy `prob` counts equal values, and no equality links {listing(alone)} to another "
                f"stream. Use `gdj`, which works with any condition."
            )
            raise PlanError(msg)


def _check_rows(plan: ShedJoin) -> None:
    """Windows of rows are for streams that are joined by equality."""
    if not any(isinstance(predicate.form, Equality) for predicate in plan.linking):
        msg = (
            f"strategy `dual` needs an equality between `{plan.names[0]}` and `{plan.names[1]}`, such as "
            f"{plan.names[0]}.k = {plan.names[1]}.k: it judges rows by how often their value occurs. Use "
            "`grubjoin` or `adaptive` for other conditions, with time bounds between the streams."
        )
        raise PlanError(msg)
