"""Small join blocks for planner tests, without SQL and without Spark."""

from __future__ import annotations

from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.statistics import Statistics, StreamStatistics
from sparkshed.sql.block import JoinBlock, Payload, Stream
from sparkshed.sql.bounds import TimeBound
from sparkshed.sql.expr import Call, Col, Lit
from sparkshed.sql.hint import ShedHint
from sparkshed.sql.inputs import Input
from sparkshed.sql.predicate import Band, Equality, Predicate

SECOND = 1_000_000


def column(stream: int, number: int = 1, type_: str = "int") -> Col:
    return Col(stream, number, type_, f"{'abcdef'[stream]}.c{number}")


def equal(left: int, right: int, number: int = 1, *, null_safe: bool = False) -> Predicate:
    a, b = column(left, number), column(right, number)
    op = "<=>" if null_safe else "="
    return Predicate(f"{a.text} {op} {b.text}", Call(op, (a, b), "boolean"), Equality(a, b, null_safe))


def band(
    left: int, right: int, low: int | None, high: int | None, *, exact: bool = True, number: int = 1
) -> Predicate:
    a, b = column(left, number), column(right, number)
    difference = Call("-", (a, b), "int")
    text = f"{low} <= {a.text} - {b.text} <= {high}"
    parts = [
        Call(op, (difference, Lit(end, "int", str(end))), "boolean")
        for op, end in ((">=", low), ("<=", high))
        if end is not None
    ]
    expr = parts[0] if len(parts) == 1 else Call("and", tuple(parts), "boolean")
    return Predicate(text, expr, Band(a, b, low, high, exact))


def general(*streams: int) -> Predicate:
    columns = tuple(column(stream) for stream in streams)
    return Predicate(" ~ ".join(c.text for c in columns), Call("in", columns, "boolean"))


def within(streams: int, seconds: int = 20) -> tuple[TimeBound, ...]:
    """The papers' window: all times of a result lie within some seconds."""
    return tuple(
        TimeBound(i, k, seconds * SECOND, f"T{i} - T{k} <= {seconds} s")
        for i in range(streams)
        for k in range(streams)
        if i != k
    )


def plan(
    *predicates: Predicate,
    streams: int,
    bounds: tuple[TimeBound, ...] | None = None,
    options: dict[str, object] | None = None,
    selectivity: dict[tuple[int, int], float] | None = None,
    rows: tuple[int, ...] | None = None,
    seconds: int = 600,
    top_share: float = 0.0,
    strict_time: bool = False,
    null_times: int = 0,
) -> ShedJoin:
    block = JoinBlock(
        hint=ShedHint("exact", options or {}),
        with_="",
        streams=tuple(
            Stream(
                name="abcdef"[number],
                relation="abcdef"[number],
                source="abcdef"[number],
                filters=(),
                inputs=(Input("ts", "timestamp"), Input("c1", "int"), Input("c2", "int")),
                time=0,
                time_text=f"{'abcdef'[number]}.ts",
                strict_time=strict_time,
                payload=(Payload("c1", 1),),
            )
            for number in range(streams)
        ),
        bounds=within(streams) if bounds is None else bounds,
        predicates=tuple(predicates),
        residual=(),
        ansi=True,
    )
    sigma = [[None] * streams for _ in range(streams)]
    for (i, k), value in (selectivity or {}).items():
        sigma[i][k] = sigma[k][i] = value
    quantiles = tuple(seconds * SECOND * step // 32 for step in range(33))
    statistics = Statistics(
        tuple(
            StreamStatistics(count, null_times, quantiles, top_share)
            for count in (rows or (10_000,) * streams)
        ),
        tuple(map(tuple, sigma)),
    )
    return ShedJoin.of(block, statistics)
