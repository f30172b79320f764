"""Choose the join orders: lowest selectivity first, within the join graph."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.errors import HintError, listing, suggest


def choose_orders(plan: ShedJoin) -> ShedJoin:
    """One order per direction; the hint's where it names one."""
    graph = JoinGraph(len(plan.names), plan.linking)
    fixed = _fixed_orders(plan)
    orders = tuple(
        fixed.get(origin) or _lowest_first(plan, graph, origin) for origin in range(len(plan.names))
    )
    return replace(plan, orders=orders)


def _lowest_first(plan: ShedJoin, graph: JoinGraph, origin: int) -> tuple[int, ...]:
    joined = [origin]
    while len(joined) < graph.streams:
        joined.append(min(graph.next_streams(joined), key=lambda s: (_selectivity(plan, joined, s), s)))
    return tuple(joined[1:])


def _selectivity(plan: ShedJoin, joined: list[int], stream: int) -> float:
    """The lowest σ by which the joined streams can probe the next one; 1 without a predicate."""
    known = [plan.statistics.selectivity[i][stream] for i in joined]
    return min((sigma for sigma in known if sigma is not None), default=1.0)


def _fixed_orders(plan: ShedJoin) -> dict[int, tuple[int, ...]]:
    numbers = {name.lower(): number for number, name in enumerate(plan.names)}

    def number(name: str) -> int:
        if name.lower() not in numbers:
            msg = (
                f"SHED option `order` names `{name}`, which is no relation of the join."
                f"{suggest(name, numbers)} The relations are {listing(plan.names)}."
            )
            raise HintError(msg)
        return numbers[name.lower()]

    fixed = {}
    for origin_name, hop_names in plan.hint.orders or ():
        origin, hops = number(origin_name), tuple(number(name) for name in hop_names)
        if sorted((origin, *hops)) != list(range(len(plan.names))):
            others = [name for name in plan.names if name.lower() != origin_name.lower()]
            msg = (
                f"SHED option `order` for `{origin_name}` must name every other relation once: "
                f"{listing(others)}, as in `{origin_name}:{'>'.join(others)}`."
            )
            raise HintError(msg)
        if origin in fixed:
            msg = f"SHED option `order` gives two orders for `{origin_name}`. Keep one of them."
            raise HintError(msg)
        fixed[origin] = hops
    return fixed
