"""How GrubJoin adapts: the slices that each direction harvests, and the orders that suit them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from sparkshed.planner.account import Account
from sparkshed.planner.adaptation import Adapter, Orders
from sparkshed.planner.configuration import Configuration, farthest
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.filling import filled
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import Choice, DirectionModel, HopModel, JoinModel
from sparkshed.planner.harvest.tally import Floats, Tally
from sparkshed.planner.lessons import lesson_work, thins_for, try_for
from sparkshed.planner.ordering import worthiest_orders

#: How far the budget may be from what was spent, and from what the throttle makes of it.
_BELIEVED = 1.5
#: The share of the budget that learning may cost; where it would cost more, fewer rows are shredded.
_MOST_TAUGHT = 0.5
#: Partial results that are pretended to have been found as expected.
_DOUBT = 10.0
#: The share of rows that stays in windows that no harvest reaches.
_RESERVE = 0.2
#: The output gained for which all of the learning is worth it, and the share of it that is done anyway.
_WORTH_LEARNING = 0.5
_LEAST_EAGER = 0.2
#: Choices, the last one included, whose slices are kept whole.
_REMEMBERED = 4


class HarvestAdapter(Adapter):
    """Chooses the slices that GrubJoin harvests, and the orders that suit them.

    Unless the policy asks for the paper's rule, each direction takes the order that is worth most at the
    price μ of work, the output that the last unit of work brings.
    """

    expected: tuple[Learned, Choice] | None = None
    _first_hops: Sequence[tuple[int, frozenset[int], float]] = ()

    def _begin(self) -> None:
        self._account = Account()
        self._eager = 1.0
        self._reaches: deque[tuple[int | None, ...]] = deque(maxlen=_REMEMBERED)

    def _orders(self, tally: Tally, throttle: float) -> Orders:
        if self._policy.by_selectivity:
            return super()._orders(tally, throttle)
        current = self.configuration.orders
        # What first hops were found to be is known of the current orders only, so it is left out here.
        learned = super()._model(current)
        if learned is None:
            return current
        budget = self._afforded(learned.model, throttle) * learned.model.full_cost
        known = [self._full_windows(origin) for origin, _ in enumerate(current)]
        return worthiest_orders(current, learned.model, budget, self._graph, known, self._join_model)

    def _join_model(self, orders: Orders) -> JoinModel | None:
        learned = super()._model(orders)
        return None if learned is None else learned.model

    def _afforded(self, model: JoinModel, throttle: float) -> float:
        """The throttle, corrected where the model's C(1) cannot be right.

        The throttle says by what factor the work should change, and what was spent is known. A budget
        z · C(1) that is far from that comes from a model that has seen little, or from an order that was
        never tried. Learning would starve on it, and the model would get worse.
        """
        if not self._policy.follows:
            return throttle
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
        thins = tuple(thins_for(direction, throttle) for direction in learned.model.directions)
        tries = tuple(
            try_for(own, thin, self._policy.shred, throttle)
            for own, thin in zip(learned.model.directions, thins, strict=True)
        )
        shred, budget = self._share_out(learned.model, thins, tries, throttle)
        corrected = self._corrected(learned.model)
        choice = choose(corrected, budget, self._policy.chooser, self._policy.metric)
        choice = filled(corrected, budget, choice)
        self.expected = (learned, choice)
        self._eager = eagerness(learned.model, corrected, choice)
        dear, cheap = (
            tuple(
                learned.harvest(origin, own, [self._slices[origin][target] for target in orders[origin]])
                for origin, own in enumerate(setting)
            )
            for setting in (choice.dear, choice.cheap)
        )
        found = Configuration(orders, throttle, dear, cheap, choice.mix, shred, thins=thins, tries=tries)
        return self._saving(found) if self._policy.save_memory else found

    def _saving(self, found: Configuration) -> Configuration:
        """The configuration with rows dropped that neither it nor the last few ones harvest."""
        self._reaches.append(farthest((*found.dear, *found.cheap), found.orders * 2, self._slices))
        horizons = tuple(
            None if None in own else max(reach for reach in own if reach is not None)
            for own in zip(*self._reaches, strict=True)
        )
        return replace(found, horizons=horizons, reserve=_RESERVE)

    def _share_out(
        self,
        model: JoinModel,
        thins: Sequence[Sequence[float]],
        tries: Sequence[float],
        throttle: float,
    ) -> tuple[float, float]:
        """The share of rows to shred, and the budget if all other rows were all rows."""
        total = (1.0 if self._policy.follows else self._account.payment) * throttle * model.full_cost
        lessons = sum(
            own.rate * lesson_work(own, thin, tried)
            for own, thin, tried in zip(model.directions, thins, tries, strict=True)
        )
        shred = self._policy.shred * self._eager
        if shred * lessons > _MOST_TAUGHT * total and not self._policy.follows:
            shred = _MOST_TAUGHT * total / lessons
        left = max(total - shred * lessons, (1 - _MOST_TAUGHT) * total)
        return shred, left / (1 - shred) if shred < 1 else total

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
        """Compare the work that was spent with the budget that there was."""
        learned = self._model(self.configuration.orders)
        if learned is None or self.configuration.is_exact:
            self._account = Account()
            return
        full = sum(
            rows * own.full_cost / own.rate
            for (rows, _), own in zip(counted, learned.model.directions, strict=True)
        )
        self._account.settle(self.configuration.throttle, full, sum(work for _, work in counted))

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
        thins = (1.0,) * len(direction.hops) if full else own.thins[origin]
        shredded = lesson_work(direction, thins, 1.0 if full else own.tries[origin])
        return own.shred * shredded, (1 - own.shred) * (own.mix * dear + (1 - own.mix) * cheap)


def eagerness(model: JoinModel, corrected: JoinModel, choice: Choice) -> float:
    """How much of the learning that the policy allows is worth its work.

    Without time correlations any share of the work finds the same share of the results, and rows that see
    a little of every window find less. Some go on learning, in case that changes.
    """
    if model.full_output <= 0 or corrected.full_cost <= 0:
        return 1.0
    work, found = choice.cost(corrected) / corrected.full_cost, choice.output(model) / model.full_output
    if not 0 < work < 1:
        return 1.0
    worth = (found - work) / min(_WORTH_LEARNING * work, 1 - work)
    return min(1.0, max(_LEAST_EAGER, worth))


def _scaled(hop: HopModel, factor: float) -> HopModel:
    return replace(hop, cost=tuple(cost * factor for cost in hop.cost), base=hop.base * factor)
