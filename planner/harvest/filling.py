"""Filling up what a chooser of whole slices leaves of the budget.

cost   |<- the choice ->|<- steps that fit ->|<- the next one ->|
                                        budget ^
                        cheap <--------------|-----> dear: mixed, to cost what the budget allows
"""

from __future__ import annotations

from sparkshed.planner.harvest.greedy import grown
from sparkshed.planner.harvest.lagrange import mixed
from sparkshed.planner.harvest.model import Choice, JoinModel

_ROUNDING = 1e-9


def filled(model: JoinModel, budget: float, choice: Choice) -> Choice:
    """The choice, with slices added by ΔO/ΔC until the expected cost is the budget.

    The last of them is for a random share of the rows only. A choice that is a mixture already stays.

    >>> from sparkshed.planner.harvest.model import DirectionModel, HopModel
    >>> hop = HopModel(cost=(10, 10, 10), partials=(0, 0, 0), share=(1, 6, 3))
    >>> model = JoinModel((DirectionModel(rate=1, results=100, hops=(hop,)),))
    >>> own = (((1,),),)
    >>> filled(model, 25, Choice(own, own))
    Choice(dear=(((0, 1, 2),),), cheap=(((1, 2),),), mix=0.5)
    """
    if choice.dear != choice.cheap:
        return choice
    setting = choice.cheap
    for larger in grown(model, setting):
        if model.cost(larger) > budget * (1 + _ROUNDING):
            return mixed(model, budget, setting, larger)
        setting = larger
    return Choice(setting, setting)
