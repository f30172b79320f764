"""How GrubJoin adapts: the slices that each direction harvests, and the orders that suit them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from math import inf

from sparkshed.planner.adaptation import WORTH_A_CHANGE, Adapter, Orders, Policy
from sparkshed.planner.configuration import Configuration, farthest
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.hull import DirectionHull
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import Choice, DirectionModel, HopModel, JoinModel
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.lessons import lesson_work, thins_for
from sparkshed.planner.slices import Slices

#: The share of the budget that is harvested with, however much learning costs.
_LEAST_HARVESTED = 0.5
#: How far the budget may be from what was spent, and from what the throttle makes of it.
_BELIEVED = 1.5
#: An order that is chosen for its slices, by a model of hops that were never made, must promise more.
_WORTH_A_TRY = 0.67
#: And this much of what all directions are worth.
_NOTICED = 0.05
#: The share of rows that stays in windows that no harvest reaches.
_RESERVE = 0.2
#: Choices, the last one included, whose slices are kept whole.
_REMEMBERED = 4
#: Streams up to which all orders of a direction are compared; with more, those one exchange away.
_FEW_STREAMS = 4


class HarvestAdapter(Adapter):
    """Chooses the slices that GrubJoin harvests, and the orders that suit them.

    Where slices are left out, the order with the lowest selectivities need not be the best: a window
    of which one slice is enough is cheap to probe for many partial results, so it should come late. Unless
    the policy asks for the paper's rule, each direction takes the order that is worth most at the
    price μ of work, the output that the last unit of work brings.
    """

    expected: tuple[Learned, Choice] | None = None

    def __init__(
        self,
        configuration: Configuration,
        slices: Sequence[Sequence[Slices]],
        graph: JoinGraph,
        policy: Policy,
    ) -> None:
        """Start from a configuration with nothing learned."""
        super().__init__(configuration, slices, graph, policy)
        self._reaches: deque[tuple[int | None, ...]] = deque(maxlen=_REMEMBERED)

    def _orders(self, tally: Tally, throttle: float) -> Orders:
        if self._policy.by_selectivity:
            return super()._orders(tally, throttle)
        current = self.configuration.orders
        learned = self._model(current)
        if learned is None:
            return current
        price = _price(learned.model, self._afforded(learned.model, throttle) * learned.model.full_cost)
        worths = [_worth(direction, price) for direction in learned.model.directions]
        best = list(current)
        for origin, order in enumerate(current):
            if not self._full_windows(origin):
                continue
            least = worths[origin] / _WORTH_A_TRY + _NOTICED * sum(worths)
            dearest = learned.model.directions[origin].full_cost / WORTH_A_CHANGE
            for other in self._others(origin, order):
                model = self._model([*current[:origin], other, *current[origin + 1 :]])
                if model is None or (own := model.model.directions[origin]).full_cost > dearest:
                    continue
                if (worth := _worth(own, price)) > least:
                    least, best[origin] = worth, other
        return tuple(best)

    def _others(self, origin: int, order: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Other orders that the join graph allows."""
        if len(order) < _FEW_STREAMS:
            options = [tuple(other) for other in permutations(order)]
        else:
            options = [
                (*order[:i], order[k], *order[i + 1 : k], order[i], *order[k + 1 :])
                for i, k in combinations(range(len(order)), 2)
            ]
        return [other for other in options if other != order and self._allowed(origin, other)]

    def _allowed(self, origin: int, order: Sequence[int]) -> bool:
        joined = [origin]
        for target in order:
            if target not in self._graph.next_streams(joined):
                return False
            joined.append(target)
        return True

    def _afforded(self, model: JoinModel, throttle: float) -> float:
        """The throttle, corrected where the model's C(1) cannot be right.

        The throttle says by what factor the work should change, and what was spent is known. A budget
        z · C(1) that is far from that comes from a model that has seen little, or from an order that was
        never tried. Learning would starve on it, and the model would get worse.
        """
        known = [
            (own.rate, work / rows)
            for (rows, work), own in zip(self._counted, model.directions, strict=True)
            if rows > 0
        ]
        afforded = self._ratio * sum(rate * work for rate, work in known)
        if afforded <= 0 or model.full_cost <= 0:
            return throttle
        share = afforded / model.full_cost
        return min(1.0, max(share / _BELIEVED, min(throttle, share * _BELIEVED)))

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        budget = self._left(learned.model, throttle)
        choice = choose(self._corrected(learned.model), budget, self._policy.chooser, self._policy.metric)
        self.expected = (learned, choice)
        dear, cheap = (
            tuple(
                learned.harvest(origin, own, [self._slices[origin][target] for target in orders[origin]])
                for origin, own in enumerate(setting)
            )
            for setting in (choice.dear, choice.cheap)
        )
        thins = tuple(thins_for(direction, throttle) for direction in learned.model.directions)
        found = Configuration(orders, throttle, dear, cheap, choice.mix, self._policy.shred, thins=thins)
        return self._saving(found) if self._policy.save_memory else found

    def _saving(self, found: Configuration) -> Configuration:
        """The configuration with rows dropped that neither it nor the last few ones harvest."""
        self._reaches.append(farthest((*found.dear, *found.cheap), found.orders * 2, self._slices))
        horizons = tuple(
            None if None in own else max(reach for reach in own if reach is not None)
            for own in zip(*self._reaches, strict=True)
        )
        return replace(found, horizons=horizons, reserve=_RESERVE)

    def _left(self, model: JoinModel, throttle: float) -> float:
        """The budget if all rows harvested, so that the rest of it pays for those that teach."""
        shred, total = self._policy.shred, throttle * model.full_cost
        teaching = shred * sum(
            own.rate * lesson_work(own, thins_for(own, throttle)) for own in model.directions
        )
        return max(total - teaching, _LEAST_HARVESTED * total) / (1 - shred) if shred < 1 else total

    def _corrected(self, model: JoinModel) -> JoinModel:
        """The model with the costs that rows turned out to have."""
        directions = [
            replace(own, hops=tuple(_scaled(hop, factor) for hop in own.hops))
            for own, factor in zip(model.directions, self.corrections, strict=True)
        ]
        return JoinModel(tuple(directions))

    def _row_cost(self, learned: Learned, origin: int, direction: DirectionModel) -> tuple[float, float]:
        own = self.configuration
        settings = [learned.places(origin, harvest) for harvest in (own.dear[origin], own.cheap[origin])]
        dear, cheap = (direction.cost(setting) / direction.rate for setting in settings)
        full = own.dear[origin] is None and own.cheap[origin] is None
        shredded = lesson_work(direction, (1.0,) * len(direction.hops) if full else own.thins[origin])
        return own.shred * shredded, (1 - own.shred) * (own.mix * dear + (1 - own.mix) * cheap)


def _price(model: JoinModel, budget: float) -> float:
    """μ: output per work at which the budget is used up; 0 if it is not."""
    edges = []
    for direction in model.directions:
        hull = DirectionHull(direction)
        edges += [(s, high - low) for s, (low, high) in zip(hull.slopes, pairwise(hull.cost), strict=True)]
    for slope, cost in sorted(edges, reverse=True):
        budget -= cost
        if budget < 0:
            return slope
    return 0.0


def _worth(direction: DirectionModel, price: float) -> float:
    """The output of a direction above what its work costs; at no price, how cheap all of its work is."""
    if price <= 0:
        return 1 / max(direction.full_cost, 1e-9)
    hull = DirectionHull(direction)
    edges = zip(hull.slopes, pairwise(hull.cost), strict=True)
    return sum((slope - price) * (high - low) for slope, (low, high) in edges if price < slope < inf)


def _scaled(hop: HopModel, factor: float) -> HopModel:
    return replace(hop, cost=tuple(cost * factor for cost in hop.cost), base=hop.base * factor)
