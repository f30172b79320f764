"""How GrubJoin adapts: the slices that each direction harvests, and the orders that suit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from math import inf

from sparkshed.planner.adaptation import WORTH_A_CHANGE, Adapter, Orders
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.filling import filled
from sparkshed.planner.harvest.hull import DirectionHull
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import Choice, DirectionModel, HopModel, JoinModel
from sparkshed.planner.harvest.tally import Floats, Tally
from sparkshed.planner.lessons import lesson_work, thins_for

#: The share of the budget that learning may cost; where it would cost more, fewer rows are shredded.
_MOST_TAUGHT = 0.5
#: Partial results that are pretended to have been found as expected.
_DOUBT = 10.0
#: How much of what was spent too little, or too much, is made up for in the next interval.
_PAID_BACK = 0.7
#: How much of it is not forgotten until then.
_OWED = 0.9
#: And the most that is owed, as a share of a budget.
_MOST_OWED = 0.5
#: A full work that changes by more is a new load, and what was owed for the old one is forgotten.
_NEW_LOAD = 1.5
#: An order that is chosen for its slices, by a model of hops that were never made, must promise more.
_WORTH_A_TRY = 0.67
#: And this much of what all directions are worth.
_NOTICED = 0.05
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
    _left_over = 0.0
    _payment = 1.0
    _full = 0.0
    _first_hops: Sequence[tuple[int, frozenset[int], float]] = ()

    def _orders(self, tally: Tally, throttle: float) -> Orders:
        if self._policy.by_selectivity:
            return super()._orders(tally, throttle)
        current = self.configuration.orders
        learned = self._model(current)
        if learned is None:
            return current
        price = _price(learned.model, throttle * learned.model.full_cost)
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

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        thins = tuple(thins_for(direction, throttle) for direction in learned.model.directions)
        shred, budget = self._share_out(learned.model, thins, throttle)
        corrected = self._corrected(learned.model)
        choice = choose(corrected, budget, self._policy.chooser, self._policy.metric)
        choice = filled(corrected, budget, choice)
        self.expected = (learned, choice)
        dear, cheap = (
            tuple(
                learned.harvest(origin, own, [self._slices[origin][target] for target in orders[origin]])
                for origin, own in enumerate(setting)
            )
            for setting in (choice.dear, choice.cheap)
        )
        return Configuration(orders, throttle, dear, cheap, choice.mix, shred, thins=thins)

    def _share_out(
        self, model: JoinModel, thins: Sequence[Sequence[float]], throttle: float
    ) -> tuple[float, float]:
        """The share of rows to shred, and the budget if all other rows were all rows."""
        total = self._payment * throttle * model.full_cost
        lessons = sum(
            own.rate * lesson_work(own, thin) for own, thin in zip(model.directions, thins, strict=True)
        )
        shred = self._policy.shred
        if shred * lessons > _MOST_TAUGHT * total:
            shred = _MOST_TAUGHT * total / lessons
        return shred, (total - shred * lessons) / (1 - shred) if shred < 1 else total

    def _found(self, harvested: Sequence[Floats]) -> None:
        """Compare the partial results of first hops with those that shredded rows promised.

        They are most of the partial results, and partial results make most of the work, so the full work
        is known better for it.
        """
        self._first_hops = ()
        learned = super()._model(self.configuration.orders)
        if learned is None or self.configuration.is_exact:
            return
        own, found_now = self.configuration, []
        for origin, (direction, counts) in enumerate(zip(learned.model.directions, harvested, strict=True)):
            first = direction.hops[0].partials
            expected, slices = 0.0, set[int]()
            for harvest, rows in zip(
                (own.dear[origin], own.cheap[origin]), counts[:, 0].tolist(), strict=True
            ):
                if rows > 0:
                    places = learned.places(origin, harvest)[0]
                    expected += rows * sum([first[place] for place in places])
                    slices.update(learned.numbers[origin][0][place] for place in places)
            found = float(counts[:, 1].sum())
            factor = (found + _DOUBT) / (expected + _DOUBT)
            found_now.append((own.orders[origin][0], frozenset(slices), factor))
        self._first_hops = found_now

    def _model(self, orders: Sequence[Sequence[int]]) -> Learned | None:
        learned = super()._model(orders)
        if learned is None or not self._first_hops:
            return learned
        directions = list(learned.model.directions)
        for origin, (target, slices, factor) in enumerate(self._first_hops):
            first, *others = directions[origin].hops
            if others and orders[origin][0] == target:
                numbers = learned.numbers[origin][0]
                partials = tuple(
                    [
                        own * factor if number in slices else own
                        for own, number in zip(first.partials, numbers, strict=True)
                    ]
                )
                hops = (replace(first, partials=partials), *others)
                directions[origin] = replace(directions[origin], hops=hops)
        return replace(learned, model=JoinModel(tuple(directions)))

    def _correct(self, counted: Sequence[tuple[float, float]]) -> None:
        super()._correct(counted)
        self._settle(counted)

    def _settle(self, counted: Sequence[tuple[float, float]]) -> None:
        """Compare the work that was spent with the budget that there was, and make up for the difference."""
        learned = self._model(self.configuration.orders)
        if learned is None or self.configuration.is_exact:
            self._left_over, self._payment = 0.0, 1.0
            return
        full = sum(
            rows * own.full_cost / own.rate
            for (rows, _), own in zip(counted, learned.model.directions, strict=True)
        )
        budget = self.configuration.throttle * full
        if budget <= 0:
            return
        spent = sum(work for _, work in counted)
        former, self._full = self._full, full
        steady = full / _NEW_LOAD <= former <= full * _NEW_LOAD
        left = _OWED * self._left_over + budget - spent if steady else 0.0
        self._left_over = min(max(left, -_MOST_OWED * budget), _MOST_OWED * budget)
        self._payment = 1 + _PAID_BACK * self._left_over / budget

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
