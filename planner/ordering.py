"""The order that is worth most, where slices are left out.

The order with the lowest selectivities need not be the best then: a window of which one slice is enough is
cheap to probe for many partial results, so it should come late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, permutations
from math import inf

from sparkshed.planner.adaptation import WORTH_A_CHANGE, Orders
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.hull import DirectionHull, price_of
from sparkshed.planner.harvest.model import DirectionModel, JoinModel

#: An order that is chosen for its slices, by a model of hops that were never made, must promise more.
_WORTH_A_TRY = 0.5
#: And this much of what all directions are worth.
_NOTICED = 0.05
#: Streams up to which all orders of a direction are compared; with more, those one exchange away.
_FEW_STREAMS = 4


def worthiest_orders(
    current: Orders,
    model: JoinModel,
    budget: float,
    graph: JoinGraph,
    known: Sequence[bool],
    model_of: Callable[[Orders], JoinModel | None],
) -> Orders:
    """For each direction the order that is worth most at the price of work; it must be clearly better.

    Args:
        current: The orders now.
        model: The join in these orders.
        budget: Work that may be done.
        graph: Which orders are allowed.
        known: Whether enough is known of a direction to change it.
        model_of: The join in other orders, if enough is known of them.
    """
    price = price_of(model, budget)
    worths = [_worth(direction, price) for direction in model.directions]
    best = list(current)
    for origin, order in enumerate(current):
        if not known[origin]:
            continue
        least = worths[origin] / _WORTH_A_TRY + _NOTICED * sum(worths)
        dearest = model.directions[origin].full_cost / WORTH_A_CHANGE
        for other in other_orders(graph, origin, order):
            changed = model_of((*current[:origin], other, *current[origin + 1 :]))
            if changed is None or (own := changed.directions[origin]).full_cost > dearest:
                continue
            if (worth := _worth(own, price)) > least:
                least, best[origin] = worth, other
    return tuple(best)


def other_orders(graph: JoinGraph, origin: int, order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Other orders that the join graph allows."""
    if len(order) < _FEW_STREAMS:
        options = [tuple(other) for other in permutations(order)]
    else:
        options = [
            (*order[:i], order[k], *order[i + 1 : k], order[i], *order[k + 1 :])
            for i, k in combinations(range(len(order)), 2)
        ]
    return [other for other in options if other != order and _allowed(graph, origin, other)]


def _allowed(graph: JoinGraph, origin: int, order: Sequence[int]) -> bool:
    joined = [origin]
    for target in order:
        if target not in graph.next_streams(joined):
            return False
        joined.append(target)
    return True


def _worth(direction: DirectionModel, price: float) -> float:
    """The output of a direction above what its work costs; at no price, how cheap all of its work is."""
    if price <= 0:
        return 1 / max(direction.full_cost, 1e-9)
    hull = DirectionHull(direction)
    edges = zip(hull.slopes, pairwise(hull.cost), strict=True)
    return sum((slope - price) * (high - low) for slope, (low, high) in edges if price < slope < inf)
