"""Rows that lost and live on at random, so that somebody sees what the others miss."""

from __future__ import annotations

from sparkshed.engine.eviction.draws import Draws
from sparkshed.engine.eviction.slots import RESERVED, Slots


class Reserve:
    """Some of the evicted rows, each of which stands for as many as its chance to be one of them was small.

    They stay until they are out of reach, whatever their worth. Their results are emitted like all others,
    and each stands for those that were missed. When there are too many, every other one goes, at random,
    and the rest stand for twice as many.

    Attributes:
        chance: The chance of a row that is evicted now.
        size: What all of them cost.
        weights: What rows stand for that became part of it, or by how much more, in this micro-batch.
    """

    def __init__(self, slots: Slots, most: int, draws: Draws) -> None:
        """Start empty; all together may cost `most`."""
        self._slots = slots
        self._most = most
        self.draws = draws
        self.chance = 1.0
        self.rows: dict[int, None] = {}
        self.weights: dict[int, float] = {}
        self.size = 0
        self._evicted = 0

    @property
    def is_over(self) -> bool:
        """Whether rows must go."""
        return self.size > self._most

    def takes(self, slot: int) -> bool:
        """Whether a row that is evicted lives on."""
        if self._slots.cost[slot] > self._most:
            return False
        self._evicted += 1
        if self._evicted * self.chance > self._most:
            self._evicted = 0
            if self.size * 2 < self._most:
                self.chance = min(1.0, 2 * self.chance)
        if self.chance < 1 and self.draws.next() >= self.chance:
            return False
        self.rows[slot] = None
        self.size += self._slots.cost[slot]
        self.weights[slot] = 1 / self.chance
        return True

    def remove(self, slot: int) -> None:
        """A row is out of reach."""
        del self.rows[slot]
        self.size -= self._slots.cost[slot]

    def thin(self) -> list[int]:
        """Every other row goes; returns those that do."""
        self.chance /= 2
        self._evicted = 0
        gone = [
            slot for slot in sorted(self.rows, key=self._slots.seq.__getitem__) if self.draws.next() < 0.5
        ]
        for slot in gone:
            self.remove(slot)
            self.weights.pop(slot, None)
        for slot in self.rows:
            self.weights[slot] = 2 * self.weights.get(slot, 1.0)
        return gone

    def notes(self) -> dict[str, float]:
        """What must be written down."""
        return {"chance": self.chance, "evicted": self._evicted, "drawn": self.draws.drawn}

    def recall(self, notes: dict[str, float]) -> None:
        """What was written down; slots have their rows again."""
        self.chance, self._evicted = notes["chance"], int(notes["evicted"])
        self.draws.drawn = int(notes["drawn"])
        for slot in self._slots.of(RESERVED).tolist():
            self.rows[slot] = None
            self.size += self._slots.cost[slot]
