"""PROB: the row leaves whose value is the rarest in the other streams."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Protocol

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.keys import NOTHING, Keys
from sparkshed.engine.eviction.policy import Arrivals, Policy
from sparkshed.engine.eviction.slots import Slots

_DEPTH = 4


class Counts(Protocol):
    """How often values came."""

    def add(self, key: int) -> None:
        """One more."""

    def get(self, key: int) -> int:
        """How many there were."""


class Exactly:
    """One counter for each value."""

    def __init__(self) -> None:
        """Start with no value."""
        self.counts: dict[int, int] = {}

    def add(self, key: int) -> None:
        """One more."""
        self.counts[key] = self.counts.get(key, 0) + 1

    def get(self, key: int) -> int:
        """How many there were."""
        return self.counts.get(key, 0)


class CountMin:
    """A count-min sketch: so many counters in four rows, whatever the number of values; never too few.

    With n values counted in w counters it is too high by more than `10.9 n / w` with a chance of 2 % at most.
    """

    def __init__(self, counters: int) -> None:
        """Start with zeros."""
        self._width = max(1, counters // _DEPTH)
        self.counts = [0] * (_DEPTH * self._width)

    def _places(self, key: int) -> list[int]:
        step = (key >> 32) | 1
        return [row * self._width + (key + row * step) % self._width for row in range(_DEPTH)]

    def add(self, key: int) -> None:
        """One more."""
        for place in self._places(key):
            self.counts[place] += 1

    def get(self, key: int) -> int:
        """How many there were at most."""
        return min(self.counts[place] for place in self._places(key))


class Prob(Policy):
    """The priority of a row is how often its key came in the streams that it is joined with by equality.

    With several such streams it is the product: the number of combinations that they offer. With several
    joins it is the sum of what each of them offers.
    """

    def __init__(self, keys: Keys, counts: Callable[[], Any]) -> None:
        """Count keys, with a counter of some kind."""
        self._known = keys
        self._counts = [(counts(), counts()) for _ in keys.links]

    def bind(self, slots: Slots, limit: int) -> None:
        """Get to know the buffer."""
        super().bind(slots, limit)
        self._keys: list[Ints] = [np.empty(0, np.int64) for _ in self._known.links]

    def arriving(self, arrivals: Arrivals) -> None:
        """Find the keys of all new rows."""
        new = self._known.of(arrivals)
        for number, keys in enumerate(new):
            if len(self._keys[number]) < self.slots.size:
                more = np.zeros(self.slots.size - len(self._keys[number]), np.int64)
                self._keys[number] = np.concatenate([self._keys[number], more])
            self._keys[number][arrivals.slots] = keys
        self._new = [keys.tolist() for keys in new]

    def arrive(self, place: int, stream: int) -> None:
        """Count its keys."""
        for number, side in chain.from_iterable(self._known.sides[stream]):
            key = self._new[number][place]
            if key != NOTHING:
                self._counts[number][side].add(key)

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """As it is now."""
        return self.current(slot)

    def current(self, slot: int) -> float:
        """How many combinations the others have offered."""
        total = 0.0
        for sides in self._known.sides[self.slots.stream[slot]]:
            product = 1.0
            for number, side in sides:
                product *= self._counts[number][1 - side].get(int(self._keys[number][slot]))
            total += product
        return total

    def currents(self, slots: Ints) -> Floats:
        """The same for many rows."""
        return np.array([self.current(slot) for slot in slots.tolist()])

    def notes(self, order: Ints) -> dict[str, Any]:
        """The counts, and the keys of the rows."""
        counts = [[side.counts for side in pair] for pair in self._counts]
        return {"counts": counts, "keys": [own.take(order) for own in self._keys] if len(order) else []}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        for pair, known in zip(self._counts, notes["counts"], strict=True):
            for side, counts in zip(pair, known, strict=True):
                side.counts = counts
        for number, keys in enumerate(notes["keys"]):
            self._keys[number] = np.zeros(self.slots.size, np.int64)
            self._keys[number][order] = keys
