"""The one place where a logical plan becomes a physical one."""

from __future__ import annotations

from dataclasses import dataclass

from sparkshed.planner.cost import hop_table, plan_direction
from sparkshed.planner.layout import Choice, Resources, choose_layout
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import JoinSpec, Layout, OutputColumn, ShedJoinExec, StreamExec
from sparkshed.planner.rules import RULES
from sparkshed.planner.statistics import Statistics
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.rewrite import output_name


@dataclass(frozen=True, slots=True)
class Planned:
    """A finished plan and the steps that led to it, for EXPLAIN.

    `buffer` says with which joins of the statement it shares a buffer, or why with none; None if it is the
    only one with a limit.
    """

    steps: tuple[tuple[str, ShedJoin], ...]
    physical: ShedJoinExec
    buffer: str | None = None

    @property
    def logical(self) -> ShedJoin:
        """The logical plan after the last rule."""
        return self.steps[-1][1]


def plan_join(
    block: JoinBlock, statistics: Statistics, resources: Resources, *, streaming: bool = False
) -> Planned:
    """Run the rules in order, then choose kernels and groups."""
    plan = ShedJoin.of(block, statistics, streaming=streaming)
    steps = [("parsed", plan)]
    for rule in RULES:
        plan = rule(plan)
        steps.append((rule.__name__, plan))
    return Planned(tuple(steps), _physical(plan, resources))


def _physical(plan: ShedJoin, resources: Resources) -> ShedJoinExec:
    # Hosts of a streaming join are chosen with their streams at hand.
    choice = Choice(Layout(0)) if plan.streaming else choose_layout(plan, resources)
    assert plan.basic is not None
    directions = [plan_direction(plan, origin) for origin in range(len(plan.names))]
    return ShedJoinExec(
        strategy=plan.hint.strategy,
        spec=JoinSpec(
            streams=stream_execs(plan.block),
            bounds=plan.closed.at,
            directions=tuple(direction for direction, _ in directions),
            basic=plan.basic,
            output=_output(plan.block),
            ansi=plan.block.ansi,
            hops=hop_table(plan) if plan.sheds or plan.streaming else {},
            rows=plan.hint.rows,
        ),
        layout=choice.layout,
        estimates=tuple(estimates for _, estimates in directions),
        replication=choice.replication,
        loads=choice.loads,
    )


def stream_execs(block: JoinBlock) -> tuple[StreamExec, ...]:
    """The operator's inputs."""
    execs = []
    for stream in block.streams:
        assert stream.time is not None
        execs.append(
            StreamExec(
                name=stream.name,
                columns=tuple(column.sql.replace("`", "") for column in stream.inputs),
                types=tuple(column.type for column in stream.inputs),
                time=stream.time,
                strict_time=stream.strict_time,
            )
        )
    return tuple(execs)


def _output(block: JoinBlock) -> tuple[OutputColumn, ...]:
    return tuple(
        OutputColumn(number, payload.column, output_name(number, payload.column))
        for number, stream in enumerate(block.streams)
        for payload in stream.payload
    )
