"""What strategies that learn from some of their rows have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import Probing
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.exact import Exact
from sparkshed.engine.strategies.ledger import Ledger
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.watching import DirectionWatch, weights_of
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.slices import Slices

#: New rows of a stream that try, in each batch, a window that is not first in their order.
_TRIED = 16


class Learning(Exact):
    """A strategy with a tally, and with an estimate of what it misses."""

    def __init__(
        self, configuration: Configuration, generator: np.random.Generator, *, per_stream: bool = False
    ) -> None:
        """Start with a configuration.

        Args:
            configuration: What to do first.
            generator: Decides about single rows.
            per_stream: Fill one histogram per stream, too, as in the paper.
        """
        super().__init__(configuration)
        self.generator = generator
        self._per_stream = per_stream

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""
        super().bind(spec, stores)
        self._slices = spec.slices
        self._buckets = max(slices.count for row in self._slices for slices in row)
        self.tally = Tally.empty(len(spec.streams), self._buckets)
        self.ledgers = [Ledger() for _ in spec.streams]
        self._squares = 0.0
        self._missed = Completeness()
        self._turn = 0

    def slices_of(self, origin: int) -> list[Slices]:
        """The slices of each hop of a direction."""
        return [self._slices[origin][target] for target in self.configuration.orders[origin]]

    def watch(
        self, origin: int, rows: Ints, thins: Sequence[float], *, sifts: bool = False
    ) -> DirectionWatch:
        """Learn from rows that see a share of each window of their order; of the first all, if that sifts."""
        tally = self.tally.directions[origin]
        order = self.configuration.orders[origin]
        tally.learned += self.stand_for(origin, rows) * math.prod(thins)
        histograms = self.tally.streams if self._per_stream else None
        seen = (1.0, *thins[1:]) if sifts else thins
        return DirectionWatch(origin, order, self.slices_of(origin), self.stores, tally, seen, histograms)

    def explore(self, origin: int, rows: Ints, thin: float) -> Iterator[Part]:
        """Let some rows try a window that is not first in their order.

        It is a different one each time, so that orders can be chosen by the selectivities of all pairs.
        """
        joined = frozenset([origin])
        others = [s for s in self.configuration.orders[origin][1:] if (origin, joined, s) in self._spec.hops]
        if others:
            self._turn += 1
            target = others[self._turn % len(others)]
            tally, slices = self.tally.directions[origin], self._slices[origin][target]
            watch = DirectionWatch(origin, (target,), [slices], self.stores, tally, (thin,))
            yield Part(rows[:_TRIED], Probing(thins=(thin,), watch=watch), only=target)

    def stand_for(self, stream: int, rows: Ints) -> float:
        """How many rows the given ones stand for."""
        weights = self.stores[stream].weights
        return float(len(rows)) if weights is None else float(weights.take(rows).sum())

    def observe(self, results: Partials | Candidates) -> Floats:
        """Count results, and those that they stand for; returns how many that are for each."""
        self.deliver(results)
        weights = weights_of(self.stores, results, range(len(self.stores)))
        largest = float(weights.max(initial=1.0))
        if largest > 1:
            self.missed(Completeness(0.0, float((weights - 1).sum()), 0.0, largest))
            for stream, (ledger, store) in enumerate(zip(self.ledgers, self.stores, strict=True)):
                if store.weights is not None:
                    found = results.rows_of(stream)
                    ledger.add(found, weights * np.sqrt(1 - 1 / store.weights.take(found)))
        return weights

    def missed(self, share: Completeness) -> None:
        """Count results that are missed in this micro-batch."""
        self._missed += share

    def settle(self) -> Completeness:
        """What share of the micro-batch's results was delivered."""
        squares = sum(ledger.squares for ledger in self.ledgers)
        missed = replace(self._missed, variance=self._missed.variance + squares - self._squares)
        self._missed, self._squares = Completeness(), squares
        self.completeness += missed
        return missed + super().settle()

    def renumbered(self, stream: int, rows: Ints) -> None:
        """Amounts follow their rows."""
        self.ledgers[stream].renumber(rows)
