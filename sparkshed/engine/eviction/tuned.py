"""GreedyDual-Join that finds the better percentile to start rows with, on the data as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.draws import Draws
from sparkshed.engine.eviction.gdj import Gdj

#: Percentiles that compete: rows must show their worth at once, as where some values stay frequent, or have
#: time for it, as where values drift. Most data want one or the other, or do not care.
PERCENTILES = (0.03, 0.8)
#: The share of the buffer in which the other one is tried, and rows that it has there at least.
_TRIED, _FEWEST = 0.03, 8
#: An epoch is so many times the rows that the buffer holds.
_EPOCH = 0.5
#: How much of what was known before an epoch counts after it, and epochs that must have passed.
_KEPT, _PATIENCE = 0.95, 6
#: The other one must be better by so many standard errors.
_SURE = 1.0


class Tuned(Gdj):
    """Most of the buffer has the percentile that does better; a small part of it has the other one.

    Rows are dealt out at random, in proportion to the sizes of both parts, so each does what the whole buffer
    would do with its percentile. They see the same streams at the same time, so what their rows yield, in
    results per arrival, can be compared at once; and all of it is output. When the other percentile does
    better, they change places. The sizes stay: a part that shrinks keeps its best rows, and would look better
    than it is.
    """

    learns = True

    def __init__(self, method: int, rows: int, streams: int, seed: tuple[int, ...], *, own: bool) -> None:
        """Start with the first percentile; `streams` is 1 where all of them share the buffer."""
        self._tried = max(_TRIED, _FEWEST * streams / rows)
        self.panels = 2 if self._tried <= 0.2 else 1
        super().__init__(method, PERCENTILES[0], streams * self.panels, own=own)
        self._streams = streams
        self._draws = Draws(seed)
        self._epoch: Floats = np.zeros((2, self.panels))
        self._seen = self._next = 0
        self._choose(0)

    def _choose(self, best: int) -> None:
        self.best = best
        self._percentiles = [PERCENTILES[best], PERCENTILES[1 - best]][: self.panels] * self._streams
        # Results g and lives l of all epochs since, and the sums of g², gl and l².
        self._sums: Floats = np.zeros((5, self.panels))
        self._epochs = 0

    def panel(self) -> int:
        """Any, by the shares."""
        return int(self._draws.next() < self._tried) if self.panels > 1 else 0

    def share(self, panel: int) -> float:
        """Its share."""
        return 1.0 if self.panels == 1 else self._tried if panel else 1 - self._tried

    def learn(self, partners: Ints, places: Ints, now: Ints) -> None:
        """Count results by the part of the buffer that their rows take part in."""
        taking_part = partners[self.slots.losts.take(partners) >= places[:, None]]
        panels = self.slots.groups.take(taking_part) % self.panels
        self._epoch[0] += np.bincount(panels, minlength=self.panels)

    def refresh(self, seq: int, now: int) -> None:
        """Find the levels, and the better percentile from time to time."""
        super().refresh(seq, now)
        counts = np.bincount(self.slots.groups.take(self.active()) % self.panels, minlength=self.panels)
        self._epoch[1] += counts * (seq - self._seen)
        self._seen = seq
        if self.panels > 1 and seq >= self._next:
            self._next = seq + max(64, int(_EPOCH * counts.sum()))
            self._compare()

    def _compare(self) -> None:
        gained, lived = self._epoch
        self._sums = _KEPT * self._sums + [gained, lived, gained**2, gained * lived, lived**2]
        self._epoch = np.zeros((2, self.panels))
        self._epochs += 1
        if self._epochs < _PATIENCE or not self._sums[1].all():
            return
        results, lives, squares, products, lengths = self._sums
        yields = results / lives
        errors = (squares - 2 * yields * products + yields**2 * lengths) / lives**2
        if yields[1] - yields[0] > _SURE * np.sqrt(max(0.0, errors.sum())):
            self._choose(1 - self.best)

    def notes(self, order: Ints) -> dict[str, Any]:
        """The levels, and what is known of the percentiles."""
        own = {
            "best": self.best,
            "epoch": self._epoch,
            "sums": self._sums,
            "epochs": self._epochs,
            "seen": self._seen,
            "next": self._next,
            "drawn": self._draws.drawn,
        }
        return {**super().notes(order), **own}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        super().recall(notes, order)
        self._choose(notes["best"])
        self._epoch, self._sums, self._epochs = notes["epoch"], notes["sums"], notes["epochs"]
        self._seen, self._next, self._draws.drawn = notes["seen"], notes["next"], notes["drawn"]
