"""Slices in rank order, the most output per cost first."""

from __future__ import annotations

from itertools import accumulate
from math import inf

from sparkshed.planner.harvest.model import DirectionModel, DirectionSetting, HopModel


class RankedHop:
    """A hop whose slices are taken in rank order, so that a number of slices says which.

    Ranks go by share per cost. With equal costs this is the paper's ranking s_ij^v. Free slices come first.

    Attributes:
        order: Slices by rank.
        cost: Cost of a probe of the first v slices, for v from 0 to all of them.
        partials: Partial results found in them.
        share: Share of the final results found in them.

    >>> RankedHop(HopModel(cost=(4, 4, 4), partials=(0, 1, 2), share=(1, 6, 3))).order
    [1, 2, 0]
    """

    __slots__ = ("cost", "order", "partials", "share", "slices")

    def __init__(self, hop: HopModel) -> None:
        self.slices = len(hop.cost)

        def rank(k: int) -> tuple[float, float]:
            return (-hop.share[k] / hop.cost[k] if hop.cost[k] > 0 else -inf, -hop.share[k])

        self.order = sorted(range(self.slices), key=rank)
        self.cost = list(accumulate((hop.cost[k] for k in self.order), initial=hop.base))
        self.cost[0] = 0.0
        self.partials = list(accumulate((hop.partials[k] for k in self.order), initial=0.0))
        self.share = list(accumulate((hop.share[k] for k in self.order), initial=0.0))
        self.share[-1] = 1.0


class RankedDirection:
    """A direction that takes the first so many slices of each hop."""

    __slots__ = ("hops", "rate", "worth")

    def __init__(self, direction: DirectionModel) -> None:
        self.rate = direction.rate
        self.worth = direction.rate * direction.results
        self.hops = [RankedHop(hop) for hop in direction.hops]

    def evaluate(self, counts: list[int]) -> tuple[float, float]:
        """Cost and output of so many slices, at least one in each hop."""
        cost, entering, share = 0.0, self.rate, self.worth
        for hop, count in zip(self.hops, counts, strict=True):
            cost += entering * hop.cost[count]
            entering *= hop.partials[count]
            share *= hop.share[count]
        return cost, share

    def setting(self, counts: list[int]) -> DirectionSetting:
        """The slices that the numbers stand for."""
        return tuple(tuple(sorted(hop.order[:count])) for hop, count in zip(self.hops, counts, strict=True))
