"""What all policies have in common: a priority for each row, which may rise and never falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sparkshed.engine.arrays import Floats, Ints
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


class Ranks(Protocol):
    """Rows that take part, in the order in which they leave each part of the buffer."""

    def add(self, slot: int, seq: int, group: int, priority: float) -> None:
        """A row enters a part of the buffer."""

    def lowest(self, group: int) -> int:
        """The row that leaves a part of the buffer next; it is taken from there."""

    def put_back(self, slot: int, group: int) -> None:
        """The row that was the lowest one stays after all."""

    def rebuild(self) -> None:
        """Priorities have changed."""


class Policy:
    """Who leaves first: the row with the lowest priority, of equal ones the oldest.

    Attributes:
        credits: Whether results change priorities.
        learns: Whether results teach the policy something else.
        foretells: Whether priorities are what rows will yield, so that their ratios mean something.
        reprices: Whether priorities may fall when it looks at all rows.
    """

    credits = False
    learns = False
    foretells = False
    reprices = False

    def bind(self, slots: Slots, limit: int) -> None:
        """Get to know the buffer and what it may hold."""
        self.slots = slots
        self.limit = limit

    def arriving(self, arrivals: Arrivals) -> None:
        """A micro-batch is about to be replayed."""

    def ranks(self, groups: int) -> Ranks | None:
        """Rows in the order in which they leave, if the policy knows better than by their priorities."""
        return None

    def stretch(self, first: int, last: int, seq: int) -> None:
        """Some of the arrivals are next, without a refresh in between; the first of them has that number."""

    def arrive(self, place: int, stream: int) -> None:
        """A row arrives; `place` is its place among the arrivals."""

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The priority of a new row; `own` of its results were emitted."""
        return 0.0

    def meet(self, partners: Sequence[int], seq: int) -> None:
        """The partners of a result that is emitted."""

    def credit(self, results: Ints, seq: int) -> None:
        """The partners of many results that are emitted, one row for each result."""

    def current(self, slot: int) -> float:
        """The priority of a row as it is now."""
        return self.slots.priority[slot]

    def currents(self, slots: Ints) -> Floats:
        """The priorities of many rows."""
        return self.slots.priorities.take(slots)

    def keeps(self, priority: float, now: int, *, own: bool) -> bool:
        """Whether the row that would leave stays, and the new row leaves instead.

        Args:
            priority: Of the row that would leave.
            now: The time.
            own: Whether it is in the part of the buffer that the new row would enter.
        """
        return False

    def evicted(self, priority: float) -> None:
        """A row left."""

    def refused(self) -> None:
        """The row that arrived did not enter."""

    def lost(self, slot: int, seq: int) -> None:
        """A row no longer takes part: it is evicted, or out of reach."""

    def interval(self, active: int) -> int:
        """Arrivals between two refreshes."""
        return 1 << 60

    def learn(self, partners: Ints, places: Ints, now: Ints, upto: int) -> None:
        """What happened in a stretch of arrivals.

        Args:
            partners: The slots of the partners of results that were emitted, one row for each result.
            places: When, among the arrivals.
            now: The times of the rows that arrived last.
            upto: The number of arrivals of the micro-batch so far.
        """

    def refresh(self, seq: int, now: int) -> None:
        """It is time to look at all rows."""

    def notes(self, order: Ints) -> dict[str, Any]:
        """What must be written down; `order` has the slots of all rows."""
        return {}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from what was written down; slots have their rows again."""
