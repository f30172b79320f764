"""What all policies have in common: a priority for each row, which may rise and never falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkshed.engine.arrays import Ints
from sparkshed.engine.eviction.slots import Slots


class Arrivals:
    """The new rows of a micro-batch in the order in which they arrive.

    Attributes:
        slots: The slot of each.
        streams: The stream of each.
        rows: Its row number there.
        times: Its time.
    """

    def __init__(self, slots: Ints, streams: Ints, rows: Ints, times: Ints) -> None:
        """Take the columns."""
        self.slots, self.streams, self.rows, self.times = slots, streams, rows, times

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.slots)


class Policy:
    """Who leaves first: the row with the lowest priority, of equal ones the oldest.

    Attributes:
        credits: Whether results change priorities.
        learns: Whether results teach the policy something else.
        panels: Parts of the buffer that rows are dealt out to.
    """

    credits = False
    learns = False
    panels = 1

    def bind(self, slots: Slots, limit: int) -> None:
        """Get to know the buffer and what it may hold."""
        self.slots = slots
        self.limit = limit

    def arriving(self, arrivals: Arrivals) -> None:
        """A micro-batch is about to be replayed."""

    def arrive(self, place: int, stream: int) -> None:
        """A row arrives; `place` is its place among the arrivals."""

    def panel(self) -> int:
        """The part of the buffer that the row goes to."""
        return 0

    def share(self, panel: int) -> float:
        """The share of the buffer that a part has."""
        return 1.0

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The priority of a new row; `own` of its results were emitted."""
        return 0.0

    def credit_one(self, partner: int, seq: int) -> None:
        """The partner of a result that is emitted."""

    def credit(self, partners: Ints, seq: int) -> None:
        """Partners of results that are emitted; one may come several times."""

    def current(self, slot: int) -> float:
        """The priority of a row as it is now."""
        return self.slots.priority[slot]

    def keeps(self, priority: float, now: int) -> bool:
        """Whether the row that would leave stays, and the new row leaves instead."""
        return False

    def evicted(self, priority: float) -> None:
        """A row left."""

    def interval(self, active: int) -> int:
        """Arrivals between two refreshes."""
        return 1 << 60

    def learn(self, partners: Ints, places: Ints, now: Ints) -> None:
        """Results that were emitted.

        Args:
            partners: The slots of their partners, one row for each result.
            places: When, among the arrivals.
            now: The times of the rows that arrived last.
        """

    def refresh(self, seq: int, now: int) -> None:
        """It is time to look at all rows."""

    def notes(self, order: Ints) -> dict[str, Any]:
        """What must be written down; `order` has the slots of all rows."""
        return {}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from what was written down; slots have their rows again."""


def spread(shares: Sequence[float]) -> list[float]:
    """Where the shares of a whole end."""
    ends, total = [], 0.0
    for share in shares:
        total += share
        ends.append(total)
    return ends
