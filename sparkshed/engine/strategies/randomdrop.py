"""RandomDrop: some rows of each stream never enter the join; those that do are joined in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.growing import Growing
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import EVERYTHING, Probing
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.watching import DirectionWatch
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.physical import JoinSpec


class RandomDrop(Learning):
    """The baseline: drop operators in front of the join.

    A row of stream i is kept with probability x_i, so a result whose rows were kept stands for the
    product of their 1/x_i results.
    """

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""
        super().bind(spec, stores)
        self._weights = [Growing(np.empty(0)) for _ in spec.streams]

    def admit(self, stream: int, count: int) -> Bools | None:
        """A random share of the rows."""
        keep = self.configuration.keep[stream]
        return None if keep >= 1 else self.generator.random(count) < keep

    def entered(self, stream: int, rows: Ints) -> None:
        """Remember what each row stands for."""
        self._weights[stream].extend(np.full(len(rows), 1.0 / self.configuration.keep[stream]))

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Every row probes everything; some of them teach what that costs."""
        self.tally.directions[origin].rows += len(rows)
        teaching = self.generator.random(len(rows)) < self.configuration.shred
        taught, rest = rows[teaching], rows[~teaching]
        if len(taught):
            watch = self.watch(origin, taught, 1.0)
            teach = _Teach(self, watch, self.configuration.orders[origin])
            yield Part(taught, Probing(watch=watch), teach.observe)
            yield from self.explore(origin, taught, 1.0)
        if len(rest):
            yield Part(rest, EVERYTHING, self.observe)

    def renumbered(self, stream: int, rows: Ints) -> None:
        """Amounts and weights follow their rows."""
        super().renumbered(stream, rows)
        self._weights[stream] = Growing(self._weights[stream].values.take(rows))

    def observe(self, results: Partials | Candidates) -> None:
        """Count results, and what they stand for."""
        self.deliver(results)
        rows = [results.rows_of(stream) for stream in range(len(self._stores))]
        weights = [own.values.take(found) for own, found in zip(self._weights, rows, strict=True)]
        product = np.prod(weights, axis=0)
        largest = float(product.max(initial=1.0))
        if largest == 1.0:
            return
        self.missed(Completeness(0.0, float((product - 1).sum()), 0.0, largest))
        for ledger, found, weight in zip(self.ledgers, rows, weights, strict=True):
            ledger.add(found, product * np.sqrt(1 - 1 / weight))


class _Teach:
    """Results of rows that teach."""

    def __init__(self, drop: RandomDrop, watch: DirectionWatch, order: Sequence[int]) -> None:
        self._drop = drop
        self._watch = watch
        self._order = order

    def observe(self, results: Partials | Candidates) -> None:
        """Learn from results, and count them."""
        self._watch.results(results, [results.rows_of(target) for target in self._order])
        self._drop.observe(results)
