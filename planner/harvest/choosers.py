"""The one place where a chooser is picked by name."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from sparkshed.planner.harvest.exhaustive import exhaustive
from sparkshed.planner.harvest.greedy import METRICS, greedy, greedy_double, greedy_reverse
from sparkshed.planner.harvest.lagrange import lagrange
from sparkshed.planner.harvest.model import Choice, JoinModel

Chooser = Callable[[JoinModel, float, str], Choice]

CHOOSERS: dict[str, Chooser] = {
    "lagrange": lambda model, budget, _: lagrange(model, budget),
    "greedy": greedy,
    "greedy_reverse": greedy_reverse,
    "greedy_double": greedy_double,
    "exhaustive": lambda model, budget, _: exhaustive(model, budget),
}


def choose(model: JoinModel, budget: float, chooser: str = "lagrange", metric: str = "best_delta") -> Choice:
    """Picks slices so that the output is large and the expected cost is at most the budget.

    Args:
        model: Cost and output of every slice.
        budget: Work units in the time unit of the model's rates: z · C(1). Below zero counts as zero.
        chooser: One of `CHOOSERS`.
        metric: One of `METRICS`, for the greedy choosers: what makes a step the best one.

    >>> from sparkshed.planner.harvest.model import DirectionModel, HopModel
    >>> hop = HopModel(cost=(10, 10, 10), partials=(0, 0, 0), share=(1, 6, 3))
    >>> model = JoinModel((DirectionModel(rate=1, results=100, hops=(hop,)),))
    >>> choice = choose(model, budget=15)
    >>> choice.cheap, choice.dear, choice.mix
    ((((1,),),), (((1, 2),),), 0.5)
    >>> choice.output(model)
    75.0
    """
    if chooser not in CHOOSERS:
        message = f"There is no chooser {chooser!r}. Choosers: {', '.join(CHOOSERS)}."
        raise ValueError(message)
    if metric not in METRICS:
        message = f"There is no metric {metric!r}. Metrics: {', '.join(METRICS)}."
        raise ValueError(message)
    if isnan(budget):
        message = "The budget is not a number."
        raise ValueError(message)
    full = model.full_setting
    if budget >= model.cost(full):
        return Choice(full, full)
    return CHOOSERS[chooser](model, max(0.0, budget), metric)
