"""Between micro-batches: from what was learned to the next configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations
from math import inf

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.hull import DirectionHull
from sparkshed.planner.harvest.learning import Learned, learned_model
from sparkshed.planner.harvest.memory import remember
from sparkshed.planner.harvest.model import Choice, DirectionModel, HopModel, JoinModel
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.randomdrop import DropDirection, DropHop, full_work, keep_fractions
from sparkshed.planner.slices import Slices

Orders = tuple[tuple[int, ...], ...]

#: How much of the model's error in one interval is corrected at once, as an exponent.
_TRUST = 0.7
#: How far an error is corrected.
_LARGEST = 4.0
#: The share of the budget that is harvested with, however much learning costs.
_LEAST_HARVESTED = 0.5
#: How much more than its share of the work a shredded row may cost, and in how many steps that is met.
_DEAR_LESSON = 1.5
_LESSONS = 8
#: A stream is never dropped altogether, or nothing more would be learned of it.
_LEAST_KEPT = 1e-3
#: A new order must promise this much less, or the inverse of it more, to be worth a change.
_WORTH_A_CHANGE = 0.8
#: An order that is chosen for its slices, by a model of hops that were never made, must promise more.
_WORTH_A_TRY = 0.67
#: And this much of what all directions are worth.
_NOTICED = 0.05
#: Streams up to which all orders of a direction are compared; with more, those one exchange away.
_FEW_STREAMS = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """How a strategy adapts: the options of the hint.

    Attributes:
        chooser: How slices are chosen.
        metric: What makes a step of a greedy chooser the best one.
        per_stream: Learn one histogram per stream instead of one per pair.
        shred: ω, the share of rows to learn from.
        fixed: Whether the orders are given, not learned.
        by_selectivity: Order by the lowest selectivity, as in the paper, and not by what the model promises.
        adapt: Δ, seconds between adaptations.
    """

    chooser: str = "lagrange"
    metric: str = "best_delta"
    per_stream: bool = False
    shred: float = 0.1
    fixed: bool = False
    by_selectivity: bool = False
    adapt: float = 5.0


class Adapter:
    """What all strategies that learn from tallies have in common: memory, orders, and the error of the model.

    The model predicts what a row of each stream costs in a configuration. What it did cost is counted, for
    all rows and not only for those that teach, so the ratio of the two, smoothed, corrects the next one.
    """

    def __init__(
        self,
        configuration: Configuration,
        slices: Sequence[Sequence[Slices]],
        graph: JoinGraph,
        policy: Policy,
    ) -> None:
        """Start from a configuration with nothing learned."""
        self.configuration = configuration
        self.learned: Tally | None = None
        self.corrections = [1.0] * len(configuration.orders)
        self._slices = slices
        self._graph = graph
        self._policy = policy

    def adapt(self, interval: Tally, throttle: float) -> Configuration:
        """The configuration of the next interval.

        Args:
            interval: What the last interval taught.
            throttle: z, the share of the full join's work that may be spent.
        """
        counted = [(direction.rows, direction.work) for direction in interval.directions]
        self.learned = (
            interval if self.learned is None else remember(self.learned, interval, self._policy.adapt)
        )
        self._correct(counted)
        fixed = self._policy.fixed
        orders = self.configuration.orders if fixed else self._orders(self.learned, throttle)
        learned = self._model(orders)
        if learned is None or throttle >= 1:
            self.configuration = Configuration(orders, throttle, shred=self._policy.shred)
        else:
            self.configuration = self._choose(learned, orders, throttle)
        return self.configuration

    def _correct(self, counted: Sequence[tuple[float, float]]) -> None:
        """Compare what rows cost with what the model, as it is now, says that they should have."""
        if self.configuration.is_exact:
            return
        learned = self._model(self.configuration.orders)
        if learned is None:
            return
        for origin, ((rows, work), model) in enumerate(zip(counted, learned.model.directions, strict=True)):
            teaching, rest = self._row_cost(learned, origin, model)
            # Where most work is for learning, the rest does not show.
            if rows > 0 and rest > teaching:
                error = _clipped((work / rows - teaching) / rest)
                former = self.corrections[origin]
                self.corrections[origin] = _clipped(former ** (1 - _TRUST) * error**_TRUST)

    def _row_cost(self, learned: Learned, origin: int, direction: DirectionModel) -> tuple[float, float]:
        """What the model expects of a row in the current configuration: work to learn, and other work."""
        raise NotImplementedError

    def _full_windows(self, origin: int) -> bool:
        """Whether rows met partners of every age; before, windows do not show what an order costs."""
        hops = self.learned.directions[origin].hops if self.learned is not None else {}
        return all(hop.pairs[-1] > 0 for (joined, _), hop in hops.items() if joined == {origin})

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        raise NotImplementedError

    def _model(self, orders: Sequence[Sequence[int]]) -> Learned | None:
        if self.learned is None:
            return None
        return learned_model(self.learned, orders, self._slices, per_stream=self._policy.per_stream)

    def _orders(self, tally: Tally, throttle: float) -> Orders:
        """Lowest selectivity first, within the join graph; an order stays unless one is clearly better."""
        found = []
        for origin, current in enumerate(self.configuration.orders):
            if not self._full_windows(origin):
                found.append(current)
                continue
            joined = [origin]
            for kept in current:
                options = self._graph.next_streams(joined)
                sigma = {stream: self._selectivity(tally, joined, stream) for stream in options}
                best = min(options, key=lambda stream: (sigma[stream], stream))
                if kept in sigma and sigma[kept] * _WORTH_A_CHANGE <= sigma[best]:
                    best = kept
                joined.append(best)
            found.append(tuple(joined[1:]))
        return tuple(found)

    def _selectivity(self, tally: Tally, joined: Sequence[int], stream: int) -> float:
        """The lowest σ by which the joined streams probe the next one; 1 where nothing is known."""
        known = [
            tally.directions[origin].selectivity(origin, stream)
            for origin in joined
            if self._graph.linked(origin, stream)
        ]
        return min((sigma for sigma in known if sigma is not None), default=1.0)


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


class HarvestAdapter(Adapter):
    """Chooses the slices that GrubJoin harvests, and the orders that suit them.

    Where slices are left out, the order with the lowest selectivities need not be the best: a window
    of which one slice is enough is cheap to probe for many partial results, so it should come late. Unless
    the policy asks for the paper's rule, each direction takes the order that is worth most at the
    price μ of work, the output that the last unit of work brings.
    """

    expected: tuple[Learned, Choice] | None = None

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
            dearest = learned.model.directions[origin].full_cost / _WORTH_A_CHANGE
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
        return Configuration(orders, throttle, dear, cheap, choice.mix, self._policy.shred, thins=thins)

    def _left(self, model: JoinModel, throttle: float) -> float:
        """The budget if all rows harvested, so that the rest of it pays for those that teach."""
        shred, total = self._policy.shred, throttle * model.full_cost
        teaching = shred * sum(
            own.rate * _shredded(own, thins_for(own, throttle)) for own in model.directions
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
        shredded = _shredded(direction, (1.0,) * len(direction.hops) if full else own.thins[origin])
        return own.shred * shredded, (1 - own.shred) * (own.mix * dear + (1 - own.mix) * cheap)


class DropAdapter(Adapter):
    """Chooses how much of each stream RandomDrop keeps.

    Rows that are kept stand for those that are not, so the model is one of the join without drops.
    """

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        directions = []
        for order, model in zip(orders, learned.model.directions, strict=True):
            hops = [
                DropHop(target, hop.base + sum(hop.cost), sum(hop.partials))
                for target, hop in zip(order, model.hops, strict=True)
            ]
            directions.append(DropDirection(model.rate, tuple(hops)))
        # The model's last hop pays for results already.
        budget = throttle * full_work(directions)
        keep = tuple(max(_LEAST_KEPT, share) for share in keep_fractions(directions, budget, output_cost=0.0))
        return Configuration(orders, throttle, shred=self._policy.shred, keep=keep)

    def _row_cost(self, learned: Learned, origin: int, direction: DirectionModel) -> tuple[float, float]:
        # Windows remember what was kept before, so the cost of single intervals says little.
        return 0.0, 0.0


def thins_for(direction: DirectionModel, share: float) -> tuple[float, ...]:
    """What share of each window a shredded row sees, to find a share of its results.

    Windows that are thinned alike show the most: as many results, of more rows. But the first windows
    then cost more than their share, so they are thinned more where that would be too dear.
    """
    hops = len(direction.hops)
    limit = _DEAR_LESSON * share * direction.full_cost / direction.rate
    for step in range(_LESSONS + 1):
        first = step / _LESSONS
        rest = (1 - first) / hops
        thins = (share ** (rest + first), *(share**rest for _ in range(hops - 1)))
        if _shredded(direction, thins) <= limit:
            break
    return thins


def _shredded(direction: DirectionModel, thins: Sequence[float]) -> float:
    """Work of a row that sees a share of each window, and tries one more window than its order has."""
    first = direction.hops[0]
    work = first.base + math.prod(thins) * sum(first.cost) if len(direction.hops) > 1 else 0.0
    entering = 1.0
    for hop, thin in zip(direction.hops, thins, strict=True):
        work += entering * (hop.base + thin * sum(hop.cost))
        entering *= thin * sum(hop.partials)
    return work


def _scaled(hop: HopModel, factor: float) -> HopModel:
    return replace(hop, cost=tuple(cost * factor for cost in hop.cost), base=hop.base * factor)


def _clipped(factor: float) -> float:
    return min(max(factor, 1 / _LARGEST), _LARGEST)
