"""How GrubJoin adapts: the slices that each direction harvests, and the orders that suit them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log
from operator import mul
from statistics import fmean

from sparkshed.planner.account import Account, FinalAccount
from sparkshed.planner.adaptation import Adapter, Orders
from sparkshed.planner.configuration import Configuration, Harvest, farthest
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.filling import filled
from sparkshed.planner.harvest.first_hops import FirstHop, counted_first_hops, first_hops, with_first_hops
from sparkshed.planner.harvest.hull import price_of
from sparkshed.planner.harvest.learning import Learned, learned_model
from sparkshed.planner.harvest.model import Choice, HopModel, JoinModel
from sparkshed.planner.harvest.tally import DirectionTally, Tally
from sparkshed.planner.lessons import lesson_work, sifts_for, thins_for, try_for
from sparkshed.planner.ordering import worthiest_orders
from sparkshed.planner.pace import Pace

#: How far the budget may be from what was spent, and from what the throttle makes of it.
_BELIEVED = 1.5
#: And the most by which it is raised or lowered.
_FARTHEST = 10.0
#: Streams with this share of the work tell how much there is of it.
_MOST_KNOWN = 0.5
#: How much more than its share of the work a shredded row may cost; more where the full work must be known
#: well, because a share of it is promised.
_DEAR_LESSON, _DEAR_WITH_PROMISE = 1.5, 2.5
#: The share of the budget that learning may cost; where it would cost more, fewer rows are shredded.
_MOST_TAUGHT = 0.5
#: The share of rows that stays in windows that no harvest reaches.
_RESERVE = 0.2
#: The output gained for which all of the learning is worth it, and the share of it that is done anyway.
_WORTH_LEARNING = 0.5
_LEAST_EAGER = 0.2
#: Choices, the last one included, whose slices are kept whole.
_REMEMBERED = 4
#: Choices, the last one included, whose prices count; and by how much z grew over them, on average, in the
#: logarithm, where there was time for more work.
_PRICED, _ROOM = 4, 0.05


class HarvestAdapter(Adapter):
    """Chooses the slices that GrubJoin harvests, and the orders that suit them.

    Unless the policy asks for the paper's rule, each direction takes the order that is worth most at the
    price μ of work, the output that the last unit of work brings.
    """

    expected: tuple[Learned, Choice] | None = None
    _first_hops: Sequence[FirstHop] = ()

    def _begin(self) -> None:
        self._account = Account()
        self._is_final = False
        self._unsettled: Tally | None = None
        self._eager = 1.0
        self._reaches: deque[tuple[int | None, ...]] = deque(maxlen=_REMEMBERED)
        self._prices: deque[tuple[float, float]] = deque(maxlen=_PRICED)

    def promise(self, throttle: float) -> None:
        """Keep to a share of the full work by the end of the run."""
        self._account, self._is_final = FinalAccount(throttle), True

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
            (own.rate * work / rows, own.full_cost)
            for (rows, work), own in zip(self._counted, model.directions, strict=True)
            if rows > 0
        ]
        afforded, full = self._ratio * sum(work for work, _ in known), sum(cost for _, cost in known)
        # Streams that had no rows may be those that cost most.
        if afforded <= 0 or full <= _MOST_KNOWN * model.full_cost:
            return throttle
        share = afforded / full
        # Where the work is to grow by far, what little was spent says less than the model.
        least = share / _BELIEVED if self._ratio <= _BELIEVED else 0.0
        corrected = max(least, min(throttle, share * _BELIEVED))
        return min(1.0, max(throttle / _FARTHEST, min(corrected, throttle * _FARTHEST)))

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        promised = not self._policy.follows
        limit = _DEAR_WITH_PROMISE if promised else _DEAR_LESSON
        thins = tuple(
            thins_for(direction, throttle, limit, promised=promised) for direction in learned.model.directions
        )
        sifts = tuple(
            sifts_for(direction, own, promised=promised)
            for direction, own in zip(learned.model.directions, thins, strict=True)
        )
        tries = tuple(
            try_for(own, thin, self._policy.shred, throttle)
            for own, thin in zip(learned.model.directions, thins, strict=True)
        )
        lessons = _lessons(learned.model, thins, tries, sifts)
        # Rows that sift for the sake of a promise are fewer, so that learning takes no more work for it.
        usual = map(sifts_for, learned.model.directions, thins)
        fewer = _lessons(learned.model, thins, tries, usual) / lessons if lessons > 0 else 1.0
        shred, budget = self._share_out(learned.model, lessons, fewer, throttle)
        corrected = self._corrected(learned.model)
        choice = choose(corrected, budget, self._policy.chooser, self._policy.metric)
        choice = filled(corrected, budget, choice)
        self.expected = (learned, choice)
        if self._policy.follows:
            self._eager = eagerness(learned.model, corrected, choice)
        dear, cheap = (
            tuple(
                learned.harvest(origin, own, [self._slices[origin][target] for target in orders[origin]])
                for origin, own in enumerate(setting)
            )
            for setting in (choice.dear, choice.cheap)
        )
        found = Configuration(
            orders,
            throttle,
            dear,
            cheap,
            choice.mix,
            shred,
            thins=thins,
            sifts=sifts,
            tries=tries,
            price=self._price(corrected, budget, choice),
            # Rows that all probe everything do so.
            pace=self._pace(learned.model, corrected, choice, shred, lessons)
            if any((*dear, *cheap))
            else None,
        )
        return self._saving(found) if self._policy.save_memory else found

    def _price(self, model: JoinModel, budget: float, choice: Choice) -> float:
        """What the next unit of work would bring, over what those of the choice bring on average.

        Where there is time for more work than was done, it costs nothing: z may be low only because it opens
        step by step.
        """
        if not self._policy.prices:
            return 0.0
        output = choice.output(model)
        worth = min(1.0, price_of(model, budget) * choice.cost(model) / output) if output > 0 else 0.0
        self._prices.append((log(self._ratio) if self._policy.follows else 0.0, worth))
        room, price = (fmean(own) for own in zip(*self._prices, strict=True))
        return 0.0 if room > _ROOM else price

    def _saving(self, found: Configuration) -> Configuration:
        """The configuration with rows dropped that neither it nor the last few ones harvest."""
        self._reaches.append(farthest((*found.dear, *found.cheap), found.orders * 2, self._slices))
        horizons = tuple(
            None if None in own else max(reach for reach in own if reach is not None)
            for own in zip(*self._reaches, strict=True)
        )
        return replace(found, horizons=horizons, reserve=_RESERVE)

    def _pace(
        self, model: JoinModel, corrected: JoinModel, choice: Choice, shred: float, lessons: float
    ) -> Pace | None:
        """What rows may cost, so that a promise is kept; None if there is none."""
        total, full = self.planned, model.full_cost
        if self._policy.follows or total <= 0 or full <= 0:
            return None
        cheap, dear, whole = (
            (1 - shred) * cost / total
            for cost in (corrected.cost(choice.cheap), corrected.cost(choice.dear), corrected.full_cost)
        )
        promised = tuple(total / full * own.full_cost / own.rate for own in model.directions)
        return Pace(promised, total, shred * lessons / total, cheap, dear, whole)

    def _share_out(
        self, model: JoinModel, lessons: float, fewer: float, throttle: float
    ) -> tuple[float, float]:
        """The share of rows to shred, and the budget if all other rows were all rows.

        Args:
            model: What all of the join costs.
            lessons: Work if all rows were shredded.
            fewer: The share to shred of those that the policy asks for.
            throttle: z.
        """
        total = self._allowed(model, throttle)
        shred = self._policy.shred * self._eager * fewer
        if shred * lessons > _MOST_TAUGHT * total and not self._policy.follows:
            shred = _MOST_TAUGHT * total / lessons
        left = max(total - shred * lessons, (1 - _MOST_TAUGHT) * total)
        return shred, left / (1 - shred) if shred < 1 else total

    def _allowed(self, model: JoinModel, throttle: float) -> float:
        """Work units of the next interval, with what is left of earlier budgets."""
        total = throttle * model.full_cost
        if not self._policy.follows:
            total *= self._account.payment(total, self._share)
        self.planned = total
        return total

    def _found(self, interval: Tally) -> None:
        self._first_hops = ()
        if self.configuration.is_exact:
            self._prices.clear()
            return
        learned = super()._model(self.configuration.orders)
        if learned is not None:
            self._first_hops = first_hops(learned, self.configuration, interval)

    def _model(self, orders: Sequence[Sequence[int]]) -> Learned | None:
        learned = super()._model(orders)
        return None if learned is None else with_first_hops(learned, orders, self._first_hops)

    def _settle(self, interval: Tally) -> None:
        """Compare the work that was spent with the budget that there was.

        The full work is that of the interval alone: what was known before is what slices were chosen by, and
        those that seem cheaper than they are get chosen more often. Its noise evens out over the intervals.
        """
        own = self.configuration
        if self._policy.follows or (own.is_exact and not self._is_final):
            self._account, self._unsettled = Account(), None
            return
        taught = interval.copy()
        if self._unsettled is not None:
            taught.add(self._unsettled)
        learned = learned_model(
            taught, own.orders, self._slices, per_stream=self._policy.per_stream, doubt=False
        )
        # An interval that taught nothing is settled with the next one.
        self._unsettled = taught if learned is None else None
        if learned is not None:
            found = counted_first_hops(learned, own, interval, taught)
            learned = with_first_hops(learned, own.orders, found)
            full = sum(
                known.rows * model.full_cost / model.rate
                for known, model in zip(taught.directions, learned.model.directions, strict=True)
            )
            spent = sum(known.work for known in taught.directions)
            self._account.settle(own.throttle, full, spent)

    def _corrected(self, model: JoinModel) -> JoinModel:
        """The model with the costs that rows turned out to have."""
        directions = [
            replace(own, hops=tuple(_scaled(hop, factor) for hop in own.hops))
            for own, factor in zip(model.directions, self.corrections, strict=True)
        ]
        return JoinModel(tuple(directions))

    def _probe_cost(self, learned: Learned, origin: int, harvest: Harvest) -> float:
        """What the model expects of a row that probes a harvest."""
        direction = learned.model.directions[origin]
        return direction.cost(learned.places(origin, harvest)) / direction.rate

    def _row_cost(self, learned: Learned, origin: int, counted: DirectionTally) -> tuple[float, float]:
        own, direction = self.configuration, learned.model.directions[origin]
        dear, cheap = (
            self._probe_cost(learned, origin, harvest) for harvest in (own.dear[origin], own.cheap[origin])
        )
        full = own.dear[origin] is None and own.cheap[origin] is None
        thins = (1.0,) * len(direction.hops) if full else own.thins[origin]
        tried = 1.0 if full else own.tries[origin]
        shredded = lesson_work(direction, thins, tried, sifts=not full and own.sifts[origin])
        if own.pace is None:
            return own.shred * shredded, (1 - own.shred) * (own.mix * dear + (1 - own.mix) * cheap)
        # Rows did not keep to the mix, but to the budget.
        costs = (dear, cheap, direction.full_cost / direction.rate)
        probed = sum(map(mul, counted.harvested[:, 0].tolist(), costs))
        return own.shred * shredded, probed / max(counted.rows, 1e-12)


def _lessons(
    model: JoinModel, thins: Sequence[Sequence[float]], tries: Sequence[float], sifts: Iterable[bool]
) -> float:
    """Work of all rows, if all were shredded."""
    return sum(
        own.rate * lesson_work(own, thin, tried, sifts=sift)
        for own, thin, sift, tried in zip(model.directions, thins, sifts, tries, strict=True)
    )


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
