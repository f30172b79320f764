"""Between micro-batches: from what was learned to the next configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.learning import Learned, learned_model
from sparkshed.planner.harvest.memory import remember
from sparkshed.planner.harvest.model import JoinModel
from sparkshed.planner.harvest.tally import DirectionTally, Tally
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.slices import Slices
from sparkshed.sql.options import ADAPTATIONS

Orders = tuple[tuple[int, ...], ...]

#: How much of the model's error in one interval is corrected at once, as an exponent.
_TRUST = 0.7
#: How far an error is corrected.
_LARGEST = 4.0
#: A new order must promise this much less, or the inverse of it more, to be worth a change.
WORTH_A_CHANGE = 0.8


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
        prices: Whether to say what work is worth, for windows with a limit.
        save_memory: Keep only a sample of the rows that no harvest reaches.
        follows: Whether z follows the load; otherwise it is a promise that is kept on average.
        adaptations: What `adaptive` adapts.
    """

    chooser: str = "lagrange"
    metric: str = "best_delta"
    per_stream: bool = False
    shred: float = 0.1
    fixed: bool = False
    by_selectivity: bool = False
    adapt: float = 5.0
    prices: bool = False
    save_memory: bool = False
    follows: bool = False
    adaptations: tuple[str, ...] = ADAPTATIONS


class Adapter:
    """What all strategies that learn from tallies have in common: memory, orders, and the error of the model.

    The model predicts what a row of each stream costs in a configuration. What it did cost is counted, for
    all rows and not only for those that teach, so the ratio of the two, smoothed, corrects the next one.

    Attributes:
        configuration: The last one.
        is_planned: Whether it follows from the last interval; otherwise too little was known for a new one.
        learned: What is known.
        planned: Work that the configuration is meant to take, if the next interval has the rows that it was
            told of.
        corrections: What rows of each stream cost, over what the model expected.
        lags: Whether the work follows z only when windows have been filled anew; the throttle of a
            configuration is then what the next interval will come to.
    """

    lags = False

    def __init__(
        self,
        configuration: Configuration,
        slices: Sequence[Sequence[Slices]],
        graph: JoinGraph,
        policy: Policy,
    ) -> None:
        """Start from a configuration with nothing learned."""
        self.configuration = configuration
        self.is_planned = True
        self.learned: Tally | None = None
        self.planned = inf
        self.corrections = [1.0] * len(configuration.orders)
        self._counted: list[tuple[float, float]] = []
        self._ratio = 1.0
        self._throttle = 1.0
        self._share = 0.0
        self._slices = slices
        self._graph = graph
        self._policy = policy
        self._begin()

    def _begin(self) -> None:
        """What a kind of adapter keeps between intervals."""

    def knows(self, spec: JoinSpec) -> None:
        """Note what matters of the join."""

    def promise(self, throttle: float) -> None:
        """Keep to a share of the full work by the end of the run, which :meth:`adapt` is told of."""

    def adapt(
        self,
        interval: Tally,
        throttle: float,
        *,
        former: float | None = None,
        rows: Sequence[float] | None = None,
        share: float = 0.0,
    ) -> Configuration:
        """The configuration of the next interval.

        Args:
            interval: What the last interval taught.
            throttle: z, the share of the full join's work that may be spent.
            former: z of the last interval, if it was not as decided.
            rows: Rows of each stream in the next interval, if that is known; otherwise it is taken to be like
                the last one.
            share: What the next interval has of all rows that are still to come; 0 if that is not known.
        """
        self._share = share
        counted = [(direction.rows, direction.work) for direction in interval.directions]
        self._settle(interval)
        learned = self.learn(interval)
        for direction, count in zip(learned.directions, rows or (), strict=False):
            direction.rows = float(count)
        self._found(interval)
        self._correct(interval)
        self._ratio = throttle / (self._throttle if former is None else former)
        self._counted, self._throttle = counted, throttle
        fixed = self._policy.fixed
        orders = self.configuration.orders if fixed else self._orders(learned, throttle)
        model = self._model(orders)
        self.is_planned = throttle >= 1 or model is not None
        if throttle >= 1:
            self.configuration = Configuration(orders, shred=self._policy.shred)
        elif model is not None:
            self.configuration = self._choose(model, orders, self._afforded(model.model, throttle))
        return self.configuration

    def learn(self, interval: Tally) -> Tally:
        """Remember what an interval taught, and decide nothing; returns all that is known."""
        if self.learned is None:
            self.learned = interval.copy()
        else:
            remember(self.learned, interval, self._policy.adapt)
        return self.learned

    def follow(self, configuration: Configuration) -> None:
        """Go on from a configuration that was decided elsewhere."""
        self.configuration, self._throttle = configuration, configuration.throttle

    def notes(self) -> dict[str, Any] | None:
        """What must not be forgotten, as lists and numbers.

        None where a micro-batch that is repeated may be shed in another way: no result of it is found by
        another one.
        """
        return None

    def recall(self, notes: Mapping[str, Any]) -> None:
        """Go on from notes."""

    def _settle(self, interval: Tally) -> None:
        """Compare the work of an interval with its budget."""

    def _found(self, interval: Tally) -> None:
        """Learn from what the first hops of rows that harvest found."""

    def _correct(self, interval: Tally) -> None:
        """Compare what rows cost with what the model, as it is now, says that they should have."""
        if self.configuration.is_exact:
            return
        learned = self._model(self.configuration.orders)
        if learned is None:
            return
        for origin, counted in enumerate(interval.directions):
            teaching, rest = self._row_cost(learned, origin, counted)
            # Where most work is for learning, the rest does not show.
            if counted.rows > 0 and rest > teaching:
                error = _clipped((counted.work / counted.rows - teaching) / rest)
                former = self.corrections[origin]
                self.corrections[origin] = _clipped(former ** (1 - _TRUST) * error**_TRUST)

    def _row_cost(self, learned: Learned, origin: int, counted: DirectionTally) -> tuple[float, float]:
        """What the model expects of a row in the current configuration: work to learn, and other work.

        Args:
            learned: The model.
            origin: The stream of the row.
            counted: What rows of the stream did.
        """
        raise NotImplementedError

    def _afforded(self, model: JoinModel, throttle: float) -> float:
        """The throttle, for a model that may be wrong."""
        return throttle

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

    def full_per_row(self) -> list[float] | None:
        """Work units that a row of each stream takes without shedding; None as long as nobody knows."""
        model = self._model(self.configuration.orders)
        return None if model is None else [own.full_cost / own.rate for own in model.model.directions]

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
                if kept in sigma and sigma[kept] * WORTH_A_CHANGE <= sigma[best]:
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


def _clipped(factor: float) -> float:
    return min(max(factor, 1 / _LARGEST), _LARGEST)
