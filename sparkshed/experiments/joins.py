"""Joins for experiments, built without SQL and without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from sparkshed.experiments.feeds import SECOND
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.physical import (
    BandKernel,
    Direction,
    Hop,
    HopKey,
    JoinSpec,
    Kernel,
    OutputColumn,
    ScanKernel,
    StreamExec,
)
from sparkshed.sql.expr import Call, Col, Lit
from sparkshed.sql.predicate import Band, Predicate

Orders = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """A join that the harness can run: its specification in every order, and its graph."""

    spec: JoinSpec
    graph: JoinGraph


def camera_join(
    m: int = 3,
    window: float = 20,
    basic: float = 2,
    eps: float = 1,
    *,
    indexed: bool = False,
    orders: Sequence[Sequence[int]] | None = None,
) -> Join:
    """The m-way join of :mod:`sparkshed.workloads.cameras`: all values pairwise within `eps`.

    Args:
        m: Number of streams.
        window: Seconds.
        basic: Length of a basic window in seconds.
        eps: Largest difference of two values of a result.
        indexed: Find partners in an index of values, and not by comparing with every row.
        orders: The orders to start with.
    """
    streams = tuple(
        StreamExec(f"c{i + 1}", ("ts", "x", "id"), ("timestamp", "double", "bigint"), 0) for i in range(m)
    )
    predicates = [_band(i, k, eps) for i, k in combinations(range(m), 2)]
    hops = dict(_hops(m, predicates, indexed=indexed))
    started = orders or [tuple(k for k in range(m) if k != i) for i in range(m)]
    directions = tuple(
        Direction(
            origin,
            tuple(hops[origin, frozenset((origin, *order[:j])), target] for j, target in enumerate(order)),
        )
        for origin, order in enumerate(started)
    )
    reach = round(window * SECOND)
    spec = JoinSpec(
        streams=streams,
        bounds=tuple(tuple(0 if i == k else reach for k in range(m)) for i in range(m)),
        directions=directions,
        basic=round(basic * SECOND),
        output=tuple(OutputColumn(i, 2, f"id{i + 1}") for i in range(m)),
        hops=hops,
    )
    return Join(spec, JoinGraph(m, predicates))


def _band(left: int, right: int, eps: float) -> Predicate:
    a, b = (Col(stream, 1, "double", f"c{stream + 1}.x") for stream in (left, right))
    difference = Call("abs", (Call("-", (a, b), "double"),), "double")
    expr = Call("<=", (difference, Lit(float(eps), "double", f"{eps:g}")), "boolean")
    return Predicate(f"abs({a.text} - {b.text}) <= {eps:g}", expr, Band(a, b, -eps, eps, False, 4.0))


def _hops(m: int, predicates: Sequence[Predicate], *, indexed: bool) -> Iterator[tuple[HopKey, Hop]]:
    for order in permutations(range(m)):
        for place in range(1, m):
            joined, target = frozenset(order[:place]), order[place]
            ready = tuple(p for p in predicates if target in p.streams and p.streams <= joined | {target})
            kernel: Kernel = BandKernel(ready) if indexed else ScanKernel()
            yield (order[0], joined, target), Hop(target, kernel, () if indexed else ready)
