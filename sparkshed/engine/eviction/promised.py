"""GreedyDual-Join where rows match by their key alone: a row is worth what its key promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.buckets import Buckets
from sparkshed.engine.eviction.curves import Ages
from sparkshed.engine.eviction.policy import Arrivals, Policy, Ranks
from sparkshed.engine.eviction.promise import Promise
from sparkshed.engine.eviction.slots import ACTIVE, RESERVED, Slots
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import JoinSpec

#: Rows are looked at once in so many arrivals, as a part of the rows, and as a number at least.
_PART, _LEAST = 1 / 4, 16
#: Where a look is at buckets, that part grows with the room, since of few rows each counts. The room where it
#: would be all of them; its bounds; and the least number of arrivals, for a part of 1.
_ALL, _PARTS, _LEAST_OF_ALL = 1024, (1 / 8, 1 / 2), 32
#: What rows of each age are taken to have promised before, so that few of them do not bend a curve.
_ASSUMED = 500.0


class Promised(Policy):
    """What a row will yield, from its value and its age.

        priority  =  age curve  ×  what is expected of the other streams

    Every credit that a row gets is for an arrival with its key, and all other rows with that key get it, too:
    so credits are kept by keys and not by rows. They fade, at several speeds, and how much each foretells is
    learned from what comes. No result has to be looked at one by one.
    """

    reprices = foretells = True

    def __init__(self, spec: JoinSpec, stores: Sequence[RowStore], rows: int, *, aged: bool) -> None:
        """Start with what is believed of any stream.

        Args:
            spec: What is joined.
            stores: The rows of each stream.
            rows: Rows that there is room for.
            aged: Whether there are ages at which rows yield more, as where only some slices are probed.
        """
        self.promise = Promise(spec, stores, rows)
        self.learns = aged
        self._bucketed = not aged and len(self.promise.classes) == 1
        self._part, self._least = _PART, _LEAST
        if self._bucketed:
            low, high = _PARTS
            self._part = min(high, max(low, rows / _ALL))
            self._least = int(_LEAST_OF_ALL * self._part)
        self._ages = Ages(spec.retentions, _ASSUMED) if aged else None
        self._ahead: Floats = np.empty(0)

    def bind(self, slots: Slots, limit: int) -> None:
        """Get to know the buffer."""
        super().bind(slots, limit)
        self.promise.bind(slots)

    def ranks(self, groups: int) -> Ranks | None:
        """By values, where rows with the same value are worth the same."""
        return Buckets(self.promise, self.slots, groups) if self._bucketed else None

    def arriving(self, arrivals: Arrivals) -> None:
        """Find the keys of all new rows."""
        self._arrivals = arrivals
        self.promise.arriving(arrivals)
        if self.slots.size > len(self._ahead):
            self._ahead = np.append(self._ahead, np.ones(self.slots.size - len(self._ahead)))

    def stretch(self, first: int, last: int, seq: int) -> None:
        """What they promise is known beforehand."""
        worth = self.promise.stretch(first, last, seq)
        if self._ages is not None:
            ahead = self._ages.fresh.take(self._arrivals.streams[first:last])
            self._ahead[self._arrivals.slots[first:last]] = ahead
            worth *= ahead
        self._begins, self._first, self._start = worth.tolist(), seq, first

    def arrive(self, place: int, stream: int) -> None:
        """From now on more is expected of its value."""
        at = place - self._start
        self._new = self._begins[at]
        for codes, known, _ in self.promise.came:
            known[codes[at]] = at

    def current(self, slot: int) -> float:
        """What a row is worth by what came since the last look."""
        promised = self.promise.now(slot, self.slots.stream[slot])
        if promised is None:
            return self.slots.priority[slot]
        return promised if self._ages is None else promised * float(self._ahead[slot])

    def keeps(self, priority: float, now: int, *, own: bool) -> bool:
        """Whether the new row promises less than the one that would leave, wherever ages do not matter."""
        return own and self._ages is None and self._new < priority

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """What its key promises."""
        begins: float = self._begins[seq - self._first]
        return begins

    def learn(self, partners: Ints, places: Ints, now: Ints, upto: int) -> None:
        """Count results by the ages of their rows."""
        if self._ages is not None:
            slots = partners.ravel()
            self._ages.yielded(self.slots, slots, now.repeat(partners.shape[1]))

    def interval(self, active: int) -> int:
        """A part of the rows."""
        return max(self._least, int(active * self._part))

    def refresh(self, seq: int, now: int) -> None:
        """Learn from what came, and say what rows are worth."""
        self.promise.look(seq)
        if self._bucketed:
            return
        active = self.slots.of(ACTIVE)
        worth = self.promise.of(active)
        if self._ages is not None:
            # Rows that stay long promise more: what they yield by their age is over that.
            present = self.slots.of(ACTIVE, RESERVED)
            self._ages.look(self.slots, present, now, self.promise.of(present))
            self._ahead[active] = ahead = self._ages.worth(self.slots, active, now)
            worth *= ahead
        self.slots.priorities[active] = worth

    def notes(self, order: Ints) -> dict[str, Any]:
        """What is known of keys and of ages."""
        ages = None if self._ages is None else self._ages.notes()
        ahead = self._ahead.take(order) if self._ages is not None and len(order) else None
        return {"promise": self.promise.notes(order), "ages": ages, "ahead": ahead}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        self.promise.recall(notes["promise"], order)
        if self._ages is not None:
            self._ages.recall(notes["ages"])
            self._ahead = np.ones(self.slots.size)
            self._ahead[order] = 1.0 if notes["ahead"] is None else notes["ahead"]
