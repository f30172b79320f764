"""`lagrange`: the concave hull of everything a join can do, and the budget's place on it.

Lagrange's relaxation puts a price μ on a unit of work and takes what is worth it. What is best for some price
is a corner of the concave hull of all (cost, output) pairs, so the hull holds the answers for all prices at
once, and no price has to be searched for:

    output                     ______o        corners: settings that are best for some price
      |               ____o''''               edges:   mixtures of the two settings at their ends
      |          _o'''
      |       o'    .                         All other settings lie below.
      |     /   .
      |   /  .        |
      | /             | budget
      o---------------------------- cost

Directions do not share work. Each has a hull of its own, and the edges of all of them, steepest first, are
the hull of the join. Where the budget cuts an edge, its two ends are mixed, so that the expected cost is the
budget. No single setting within the budget has a larger output.
"""

from __future__ import annotations

from sparkshed.planner.harvest.hull import DirectionHull
from sparkshed.planner.harvest.model import Choice, JoinModel, Setting

_ROUNDING = 1e-12


def lagrange(model: JoinModel, budget: float) -> Choice:
    """The best mixture of settings whose expected cost is at most the budget."""
    hulls = [DirectionHull(direction) for direction in model.directions]
    edges = [
        (-slope, number, corner)
        for number, hull in enumerate(hulls)
        for corner, slope in enumerate(hull.slopes, start=1)
    ]
    edges.sort()
    at = [0] * len(hulls)
    spent = 0.0
    for _, number, corner in edges:
        price = hulls[number].cost[corner] - hulls[number].cost[corner - 1]
        if spent + price > budget * (1 + _ROUNDING):
            cheap = _setting(hulls, at)
            at[number] = corner
            return mixed(model, budget, cheap, _setting(hulls, at))
        spent += price
        at[number] = corner
    best = _setting(hulls, at)
    return Choice(best, best)


def _setting(hulls: list[DirectionHull], at: list[int]) -> Setting:
    return tuple([hull.setting(corner) for hull, corner in zip(hulls, at, strict=True)])


def mixed(model: JoinModel, budget: float, cheap: Setting, dear: Setting) -> Choice:
    """The mixture that costs what the budget allows."""
    low, high = model.cost(cheap), model.cost(dear)
    mix = (budget - low) / (high - low) if high > low else 0.0
    if mix <= 0.0:
        return Choice(cheap, cheap)
    return Choice(dear, dear) if mix >= 1.0 else Choice(dear, cheap, mix)
