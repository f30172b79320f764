"""Plan a streaming join: nothing is known of its rows yet, so it starts careful and learns."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace

from sparkshed.planner.assumptions import assumed
from sparkshed.planner.buffering import buffering_of
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.hosting import choose_hosts
from sparkshed.planner.layout import Resources
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.planner import Planned, plan_join
from sparkshed.planner.shedding import Shedding, policy_of
from sparkshed.planner.streaming import StreamingPlan
from sparkshed.spark.inputs import Inputs
from sparkshed.spark.streaming.watermarks import has_watermark, shape_of
from sparkshed.spark.warning import warn_user
from sparkshed.sql.block import JoinBlock, Stream
from sparkshed.sql.errors import listing


def plan_streaming(block: JoinBlock, inputs: Inputs, resources: Resources) -> Planned:
    """The plan of a join of which one relation at least is a stream."""
    planned = plan_join(block, assumed(block), resources, streaming=True)
    static = tuple(not frame.isStreaming for frame in inputs.frames)
    expires = _watermarks(block, inputs)
    stateful = any(frame.isStreaming and shape_of(frame).stateful for frame in inputs.frames)
    hosts, loads = choose_hosts(planned.logical, static, resources)
    _check_zone(block)
    if expires and planned.logical.hint.memory is None and planned.logical.hint.rows is None:
        _check_ends(planned.logical, static)
    streaming = StreamingPlan(
        spec=planned.physical.spec,
        hosts=hosts,
        shedding=_shedding(planned.logical, planned, hosts.count),
        follows=block.hint.follows,
        static=static,
        regain=0 if stateful or not expires else _longest(planned.logical),
        expires=expires,
        waits=stateful,
        filters=tuple(tuple(_narrowing(stream)) for stream in block.streams),
        loads=loads,
    )
    return replace(planned, physical=replace(planned.physical, streaming=streaming))


def _narrowing(stream: Stream) -> Iterator[str]:
    """The filters of a stream but for the one that its time is not NULL: no such row is kept anyway."""
    for text in stream.filters:
        if text.replace("`", "").lower() != f"{stream.time_text} is not null".replace("`", "").lower():
            yield text


def _shedding(plan: ShedJoin, planned: Planned, hosts: int) -> Shedding | None:
    if not plan.sheds:
        return None
    policy = replace(policy_of(plan.hint), follows=plan.hint.follows)
    orders = planned.physical.spec.orders
    return Shedding(
        strategy=plan.hint.strategy,
        budget=plan.hint.budget or 1.0,
        policy=policy,
        graph=JoinGraph(len(plan.names), plan.linking),
        seed=secrets.randbits(32) if plan.hint.seed is None else plan.hint.seed,
        configuration=Configuration(orders, shred=policy.shred),
        buffering=buffering_of(plan.hint, hosts),
    )


def _watermarks(block: JoinBlock, inputs: Inputs) -> bool:
    """Whether all streams have watermarks on their times; without them rows are kept for good."""
    missing = [
        stream
        for stream, frame in zip(block.streams, inputs.frames, strict=True)
        if frame.isStreaming and not has_watermark(frame, f"c{stream.time}")
    ]
    if missing:
        warn_user(
            f"{listing(stream.name for stream in missing)} without a watermark on "
            f"{listing(str(stream.time_text) for stream in missing)}: no row can ever leave the windows, and "
            "the state grows without end. Add .withWatermark(…) to the stream, or `WATERMARK ts DELAY OF "
            "INTERVAL 10 SECONDS` after it in FROM, or --watermark 'ts 10 seconds' to the command."
        )
    return not missing


def _check_ends(plan: ShedJoin, static: tuple[bool, ...]) -> None:
    """Without a bound on how much later others may be, rows of a stream are kept for ever."""
    for number, stream in enumerate(plan.block.streams):
        if not static[number] and plan.closed.window(number) is None:
            others = range(len(plan.names))
            other = next(own for own in others if own != number and plan.closed.at[own][number] is None)
            later = plan.block.streams[other].time_text
            warn_user(
                f"rows of `{stream.name}` never leave the windows, and the state grows without end: nothing "
                f"says how much later rows of `{plan.names[other]}` may be. Add a bound, for example "
                f"{later} <= {stream.time_text} + INTERVAL 1 HOUR (months are no bound)."
            )
            return


def _check_zone(block: JoinBlock) -> None:
    """Differences of times on a local clock that shifts can be a day wider than they say."""
    widened = [bound.text for bound in block.bounds if bound.widened]
    if widened:
        warn_user(
            f"Spark takes `{widened[0]}` on the local clock of the session's time zone, which shifts. So "
            "windows hold rows for 26 hours more, watermarks behind the join are as much later, and the "
            "figures count results that Spark drops behind it. Write `a.ts <= b.ts + INTERVAL …` and the "
            "other way round instead of a difference, or set spark.sql.session.timeZone to UTC."
        )


def _longest(plan: ShedJoin) -> int:
    longest = max([0, *(bound for row in plan.closed.at for bound in row if bound is not None)])
    # Spark counts watermarks in milliseconds.
    return -(-longest // 1000) * 1000
