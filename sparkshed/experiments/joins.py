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
    EqualityKernel,
    Hop,
    HopKey,
    JoinSpec,
    Kernel,
    OutputColumn,
    ScanKernel,
    SetKernel,
    StreamExec,
    VectorKernel,
)
from sparkshed.sql.expr import Call, Col, Lit
from sparkshed.sql.predicate import Band, Equality, Overlap, Predicate, Similarity

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


def overlap_join(window: float = 20, basic: float = 1, least: int = 3, *, indexed: bool = False) -> Join:
    """The join of two streams of :func:`sparkshed.workloads.drifting.drifting_sets`: `least` common items.

    Args:
        window: Seconds.
        basic: Length of a basic window in seconds.
        least: Items that both sets of a result have, at least.
        indexed: Find partners by the items of their sets; otherwise every row is compared with, as a vector.
    """
    if indexed:
        a, b = (Col(stream, 1, "array<int>", f"s{stream + 1}.s") for stream in (0, 1))
        expr = Call(">=", (Call("overlap", (a, b), "int"), Lit(least, "int", f"{least}")), "boolean")
        return _two_way("array<int>", window, basic, SetKernel(Overlap(a, b, least), 1), expr)
    a, b = (Col(stream, 1, "array<float>", f"s{stream + 1}.v") for stream in (0, 1))
    # Products are whole numbers, so that half a number less decides every pair without rounding.
    product, limit = Call("inner_product", (a, b), "float"), Lit(least - 0.5, "float", f"{least - 0.5}")
    expr = Call(">=", (product, limit), "boolean")
    similarity = Similarity("inner_product", a, b, ">=", least - 0.5)
    kernel = VectorKernel(similarity, Predicate("products", expr, similarity))
    return _two_way("array<float>", window, basic, kernel, expr)


def key_join(window: float = 20, basic: float = 1) -> Join:
    """The join of two streams of :func:`sparkshed.workloads.drifting.drifting_keys`: equal keys."""
    a, b = (Col(stream, 1, "bigint", f"s{stream + 1}.k") for stream in (0, 1))
    kernel = EqualityKernel((Equality(a, b, False),))
    return _two_way("bigint", window, basic, kernel, Call("=", (a, b), "boolean"))


def _two_way(kind: str, window: float, basic: float, kernel: Kernel, expr: Call) -> Join:
    """The join of two streams whose column 1 has a type, by one condition with a kernel."""
    hops = {(i, frozenset([i]), 1 - i): Hop(1 - i, kernel, ()) for i in (0, 1)}
    reach = round(window * SECOND)
    spec = JoinSpec(
        streams=tuple(
            StreamExec(f"s{i + 1}", ("ts", "x", "id"), ("timestamp", kind, "bigint"), 0) for i in (0, 1)
        ),
        bounds=((0, reach), (reach, 0)),
        directions=tuple(Direction(i, (hops[i, frozenset([i]), 1 - i],)) for i in (0, 1)),
        basic=round(basic * SECOND),
        output=(OutputColumn(0, 2, "id1"), OutputColumn(1, 2, "id2")),
        hops=hops,
    )
    (form,) = kernel.forms
    return Join(spec, JoinGraph(2, [Predicate("x", expr, form)]))


def keyed_join(
    rows: int | None, *, bound: int | None = None, indexed: bool = True, basic: float = 1.0
) -> Join:
    """The join of two streams on equal keys, over the last rows of each or over those of some time.

    Args:
        rows: n, the rows of each window; None is any number.
        bound: Largest difference of two times, in microseconds; None is any.
        indexed: Look keys up, and do not compare with every row.
        basic: Length of a basic window in seconds.
    """
    streams = tuple(
        StreamExec(f"k{i + 1}", ("ts", "k", "id"), ("timestamp", "bigint", "bigint"), 0) for i in (0, 1)
    )
    left, right = (Col(s, 1, "bigint", f"k{s + 1}.k") for s in (0, 1))
    equal = Predicate(
        f"{left.text} = {right.text}", Call("=", (left, right), "boolean"), Equality(left, right)
    )
    kernel: Kernel = EqualityKernel((Equality(left, right),)) if indexed else ScanKernel()
    checks = () if indexed else (equal,)
    spec = JoinSpec(
        streams=streams,
        bounds=((0, bound), (bound, 0)),
        directions=tuple(Direction(i, (Hop(1 - i, kernel, checks),)) for i in (0, 1)),
        basic=round(basic * SECOND),
        output=tuple(OutputColumn(i, 2, f"id{i + 1}") for i in (0, 1)),
        rows=rows,
    )
    return Join(spec, JoinGraph(2, [equal]))


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
