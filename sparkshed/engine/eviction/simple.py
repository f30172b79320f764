"""Policies that need no more than a line or two: fifo, lru, lfu and rand."""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Ints
from sparkshed.engine.eviction.draws import Draws
from sparkshed.engine.eviction.policy import Policy


class Fifo(Policy):
    """The row that arrived first leaves first."""

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """Its arrival."""
        return seq


class Lru(Policy):
    """The row leaves whose last result is the longest ago; a row without one counts from its arrival."""

    credits = True

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """Its arrival."""
        return seq

    def meet(self, partners: Sequence[int], seq: int) -> None:
        """They were used just now."""
        for partner in partners:
            self.slots.priority[partner] = seq

    def credit(self, results: Ints, seq: int) -> None:
        """They were used just now."""
        self.slots.priorities[results] = seq


class Lfu(Policy):
    """The row with the fewest results leaves."""

    credits = True

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The results that it arrived with."""
        return own

    def meet(self, partners: Sequence[int], seq: int) -> None:
        """One result more for each."""
        for partner in partners:
            self.slots.priority[partner] += 1.0

    def credit(self, results: Ints, seq: int) -> None:
        """One result more for each."""
        np.add.at(self.slots.priorities, results, 1.0)


class Rand(Policy):
    """Any row leaves, one as likely as the other.

    Every row has a lifetime, exponentially distributed, from its arrival on; the clock stands where the last
    row left. Such lifetimes have no memory, so whoever is the next, all rows have the same chance.
    """

    def __init__(self, seed: tuple[int, ...]) -> None:
        """Start the clock."""
        self._draws = Draws(seed)
        self._clock = 0.0

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The end of its life."""
        return self._clock - log1p(-self._draws.next())

    def evicted(self, priority: float) -> None:
        """The clock moves on."""
        self._clock = max(self._clock, priority)

    def notes(self, order: Ints) -> dict[str, Any]:
        """The clock and the draws."""
        return {"clock": self._clock, "drawn": self._draws.drawn}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        self._clock, self._draws.drawn = notes["clock"], notes["drawn"]
