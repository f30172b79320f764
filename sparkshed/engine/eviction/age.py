"""AGE: rows stay for as long as rows of their stream are worth it on average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
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
        self._steps = [0 if own is None else max(1, own // _POINTS) for own in retentions]
        self._results: list[Ints] = [np.zeros(_POINTS, np.int64) for _ in retentions]
        self._lived: list[Floats] = [np.zeros(_POINTS) for _ in retentions]
        self._best = [0] * len(retentions)
        self._looked: int | None = None

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The end of its stay."""
        return float(self.slots.time[slot] + self._best[self.slots.stream[slot]])

    def keeps(self, priority: float, now: int) -> bool:
        """Whether its stay is not over."""
        return priority > now

    def learn(self, partners: Ints, places: Ints, now: Ints) -> None:
        """Count results by the ages of their rows."""
        slots = partners.ravel()
        streams = self.slots.streams.take(slots)
        ages = np.repeat(now, partners.shape[1]) - self.slots.times.take(slots)
        for stream, step in enumerate(self._steps):
            if step:
                own = np.clip(ages[streams == stream] // step, 0, _POINTS - 1)
                self._results[stream] += np.bincount(own, minlength=_POINTS)

    def interval(self, active: int) -> int:
        """A share of the rows."""
        return max(_LEAST, active // _SHARE)

    def refresh(self, seq: int, now: int) -> None:
        """Count how long rows lived at each age, and find the best."""
        passed = 0 if self._looked is None else now - self._looked
        self._looked = now
        present = np.flatnonzero((self.slots.states == ACTIVE) | (self.slots.states == RESERVED))
        streams, ages = self.slots.streams.take(present), now - self.slots.times.take(present)
        for stream, step in enumerate(self._steps):
            if not step:
                continue
            own = np.clip(ages[streams == stream] // step, 0, _POINTS - 1)
            self._lived[stream] += passed / step * np.bincount(own, minlength=_POINTS)
            if self._results[stream].sum() >= _ENOUGH:
                self._best[stream] = step * self._worth(stream)

    def _worth(self, stream: int) -> int:
        """`k_opt`, in points of the curve."""
        results, lived = self._results[stream], self._lived[stream]
        rates = results / np.maximum(lived, 1.0)
        return int(np.argmax(np.cumsum(rates) / np.arange(1, _POINTS + 1))) + 1

    def notes(self, order: Ints) -> dict[str, Any]:
        """The curves."""
        return {
            "results": self._results,
            "lived": self._lived,
            "best": self._best,
            "looked": self._looked,
        }

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        self._results, self._lived = list(notes["results"]), list(notes["lived"])
        self._best, self._looked = list(notes["best"]), notes["looked"]
