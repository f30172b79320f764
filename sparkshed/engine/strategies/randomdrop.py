"""RandomDrop: some rows of each stream never enter the join; those that do are joined in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import EVERYTHING, Probing
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.watching import DirectionWatch


class RandomDrop(Learning):
    """The baseline: drop operators in front of the join.

    A row of stream i is kept with probability x_i, so a result whose rows were kept stands for the
    product of their 1/x_i results.
    """

    def admit(self, stream: int, count: int) -> Bools | None:
        """A random share of the rows."""
        keep = self.configuration.keep[stream]
        return None if keep >= 1 else self.generator.random(count) < keep

    def entered(self, stream: int, rows: Ints) -> None:
        """A row that was kept stands for those that were not."""
        self.stores[stream].weigh(rows, 1.0 / self.configuration.keep[stream])

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Every row probes everything; some of them teach what that costs."""
        self.tally.directions[origin].rows += self.stand_for(origin, rows)
        teaching = self.generator.random(len(rows)) < self.configuration.shred
        taught, rest = rows[teaching], rows[~teaching]
        if len(taught):
            watch = self.watch(origin, taught, (1.0,) * len(self.configuration.orders[origin]))
            teach = _Teach(self, watch, self.configuration.orders[origin])
            yield Part(taught, Probing(watch=watch), teach.observe)
            yield from self.explore(origin, taught, 1.0)
        if len(rest):
            yield Part(rest, EVERYTHING, self.observe)


class _Teach:
    """Results of rows that teach."""

    def __init__(self, drop: RandomDrop, watch: DirectionWatch, order: Sequence[int]) -> None:
        self._drop = drop
        self._watch = watch
        self._order = order

    def observe(self, results: Partials | Candidates) -> None:
        """Learn from results, and count them."""
        weights = self._drop.observe(results)
        self._watch.results(results, [results.rows_of(target) for target in self._order], weights)
