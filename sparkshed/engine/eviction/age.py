"""AGE: rows stay for as long as rows of their stream are worth it on average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Ints
from sparkshed.engine.eviction.curves import Curves
from sparkshed.engine.eviction.policy import Policy
from sparkshed.engine.eviction.slots import ACTIVE, RESERVED

#: Points of an age curve, from 0 to the longest time that a row can match.
_POINTS = 64
#: Results that a curve needs to say anything.
_ENOUGH = 64
_SHARE, _LEAST = 32, 8


class Age(Policy):
    """One age curve per stream: results of a row by its age.

    `C(k)` is what a row yields until it has age k; it stays until `C(k)/k` is largest, `k_opt`. While all
    rows are younger than that, arriving rows are dropped, so that places become free one after the other.
    Until enough is known, the oldest row leaves.
    """

    learns = True

    def __init__(self, retentions: Sequence[int | None]) -> None:
        """Take how long a row of each stream can match; one that does so for ever has no curve."""
        self._curves = Curves(retentions, _POINTS)
        self._best = [0] * len(retentions)

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The end of its stay."""
        return float(self.slots.time[slot] + self._best[self.slots.stream[slot]])

    def keeps(self, priority: float, now: int, *, own: bool) -> bool:
        """Whether its stay is not over."""
        return priority > now

    def learn(self, partners: Ints, places: Ints, now: Ints, upto: int) -> None:
        """Count results by the ages of their rows."""
        slots = partners.ravel()
        ages = np.repeat(now, partners.shape[1]) - self.slots.times.take(slots)
        self._curves.yielded(self.slots.streams.take(slots), ages, np.ones(len(slots)))

    def interval(self, active: int) -> int:
        """A share of the rows."""
        return max(_LEAST, active // _SHARE)

    def refresh(self, seq: int, now: int) -> None:
        """Count how long rows lived at each age, and find the best."""
        present = np.flatnonzero((self.slots.states == ACTIVE) | (self.slots.states == RESERVED))
        self._curves.look(self.slots.streams.take(present), self.slots.times.take(present), now)
        for stream, step in enumerate(self._curves.steps.tolist()):
            if step and self._curves.results[stream].sum() >= _ENOUGH:
                self._best[stream] = step * self._worth(stream)

    def _worth(self, stream: int) -> int:
        """`k_opt`, in points of the curve."""
        rates = self._curves.results[stream] / np.maximum(self._curves.lived[stream], 1.0)
        return int(np.argmax(np.cumsum(rates) / np.arange(1, _POINTS + 1))) + 1

    def notes(self, order: Ints) -> dict[str, Any]:
        """The curves."""
        return {"curves": self._curves.notes(), "best": self._best}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        self._curves.recall(notes["curves"])
        self._best = list(notes["best"])
