"""Between micro-batches: from what was learned to the next configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.learning import Learned, learned_model
from sparkshed.planner.harvest.model import Choice, DirectionModel
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.randomdrop import DropDirection, DropHop, full_work, keep_fractions
from sparkshed.planner.slices import Slices

Orders = tuple[tuple[int, ...], ...]

#: What is left of older counts at each adaptation.
_DECAY = 0.5
#: How much of the model's error in one interval is corrected at once, as an exponent.
_TRUST = 0.7
#: How far the model's error may move the budget.
_LARGEST_BIAS = 4.0
#: A stream is never dropped altogether, or nothing more would be learned of it.
_LEAST_KEPT = 1e-3
#: A new order must promise this much less to be worth a change.
_WORTH_A_CHANGE = 0.9


@dataclass(frozen=True, slots=True)
class Policy:
    """How a strategy adapts: the options of the hint.

    Attributes:
        chooser: How slices are chosen.
        metric: What makes a step of a greedy chooser the best one.
        per_stream: Learn one histogram per stream instead of one per pair.
        shred: ω, the share of rows to learn from.
        fixed: Whether the orders are given, not learned.
    """

    chooser: str = "lagrange"
    metric: str = "best_delta"
    per_stream: bool = False
    shred: float = 0.1
    fixed: bool = False


class Adapter:
    """What all strategies that learn from tallies have in common: memory, orders, and the error of the model.

    The model predicts what a configuration costs. Where the last interval cost more or less than it was
    meant to, the next budget is smaller or larger by that: `bias` is spent / meant, smoothed.
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
        self.bias = 1.0
        self._slices = slices
        self._graph = graph
        self._policy = policy

    def adapt(self, interval: Tally, throttle: float) -> Configuration:
        """The configuration of the next interval.

        Args:
            interval: What the last interval taught.
            throttle: z, the share of the full join's work that may be spent.
        """
        if self.learned is None:
            self.learned = interval
        else:
            self.learned.decay(_DECAY)
            self.learned.add(interval)
        self._correct(interval)
        orders = self.configuration.orders if self._policy.fixed else self._orders(self.learned)
        learned = self._model(orders)
        if learned is None or throttle >= 1:
            self.configuration = Configuration(orders, throttle, shred=self._policy.shred)
        else:
            self.configuration = self._choose(learned, orders, throttle)
        return self.configuration

    def full_work(self, interval: Tally) -> float | None:
        """What the rows of an interval cost if nothing is shed; None while nothing is known."""
        learned = self._model(self.configuration.orders)
        if learned is None:
            return None
        return sum(
            counted.rows / kept * self._row_cost(origin, learned.model.directions[origin])
            for origin, (counted, kept) in enumerate(
                zip(interval.directions, self.configuration.keep, strict=True)
            )
        )

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        raise NotImplementedError

    def _row_cost(self, origin: int, model: DirectionModel) -> float:
        """What a row of a stream costs if nothing is shed."""
        return model.cost(model.full_setting) / model.rate

    def _model(self, orders: Sequence[Sequence[int]]) -> Learned | None:
        if self.learned is None:
            return None
        return learned_model(self.learned, orders, self._slices, per_stream=self._policy.per_stream)

    def _correct(self, interval: Tally) -> None:
        """Compare what the interval cost with the share of the full join's work that it was meant to cost."""
        if self.configuration.throttle >= 1:
            return
        full = self.full_work(interval)
        spent = sum(direction.work for direction in interval.directions)
        if full and spent > 0:
            bias = self.bias * (spent / (self.configuration.throttle * full)) ** _TRUST
            self.bias = min(max(bias, 1 / _LARGEST_BIAS), _LARGEST_BIAS)

    def _orders(self, tally: Tally) -> Orders:
        """Lowest selectivity first, within the join graph; an order stays unless one is clearly better."""
        found = []
        for origin, current in enumerate(self.configuration.orders):
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


class HarvestAdapter(Adapter):
    """Chooses the slices that GrubJoin harvests."""

    expected: tuple[Learned, Choice] | None = None

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        budget = throttle * learned.model.full_cost / self.bias
        choice = choose(learned.model, budget, self._policy.chooser, self._policy.metric)
        self.expected = (learned, choice)
        dear, cheap = (
            tuple(
                learned.harvest(origin, own, [self._slices[origin][target] for target in orders[origin]])
                for origin, own in enumerate(setting)
            )
            for setting in (choice.dear, choice.cheap)
        )
        return Configuration(orders, throttle, dear, cheap, choice.mix, self._policy.shred)


class DropAdapter(Adapter):
    """Chooses how much of each stream RandomDrop keeps."""

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        kept = self.configuration.keep
        directions = []
        for origin, (order, model) in enumerate(zip(orders, learned.model.directions, strict=True)):
            # Without drops windows were fuller, and more rows probed them.
            hops = [
                DropHop(target, hop.base + sum(hop.cost) / kept[target], sum(hop.partials) / kept[target])
                for target, hop in zip(order, model.hops, strict=True)
            ]
            directions.append(DropDirection(model.rate / kept[origin], tuple(hops)))
        # The model's last hop pays for results already.
        budget = throttle * full_work(directions) / self.bias
        keep = tuple(max(_LEAST_KEPT, share) for share in keep_fractions(directions, budget, output_cost=0.0))
        return Configuration(orders, throttle, shred=self._policy.shred, keep=keep)

    def _row_cost(self, origin: int, model: DirectionModel) -> float:
        kept = self.configuration.keep
        cost, entering = 0.0, 1.0
        for target, hop in zip(self.configuration.orders[origin], model.hops, strict=True):
            cost += entering * (hop.base + sum(hop.cost) / kept[target])
            entering *= sum(hop.partials) / kept[target]
        return cost
