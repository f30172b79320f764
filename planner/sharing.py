"""Several joins of the same streams in one operator, with one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparkshed.planner.planner import Planned


def in_one(plans: Sequence[Planned]) -> list[Planned]:
    """The plans with the same windows; the first one is that of the operator, with the others beside it.

    Basic windows are the longest of any plan, and so is the time by which watermarks are held back.
    """
    if len(plans) == 1:
        return list(plans)
    physicals = [plan.physical for plan in plans]
    streams, basic = physicals[0].spec.streams, max(own.spec.basic for own in physicals)
    specs = [replace(own.spec, streams=streams, basic=basic) for own in physicals]
    specs[0] = replace(specs[0], beside=tuple(specs[1:]))
    regain = max((own.streaming.regain for own in physicals if own.streaming is not None), default=0)
    found = []
    for plan, spec in zip(plans, specs, strict=True):
        streaming = plan.physical.streaming
        if streaming is not None:
            streaming = replace(streaming, spec=spec, regain=regain)
        found.append(replace(plan, physical=replace(plan.physical, spec=spec, streaming=streaming)))
    return found
