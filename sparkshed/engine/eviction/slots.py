"""What is known of each row that is held, by the number of its slot."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from sparkshed.engine.arrays import AnyArray, Floats, Ints

#: A slot is free, or its row takes part, or has lost and is one of the reserve, or is out of reach in time.
GONE, ACTIVE, RESERVED, PAST = range(4)
_FIRST = 64
#: Later than any arrival of a micro-batch.
NEVER = 1 << 62


class Slots:
    """Columns over slots, to be read and written one by one as well as all at once.

    Rows of stores are numbered anew from time to time; a row keeps its slot as long as it is held.

    Attributes:
        state: One of `GONE`, `ACTIVE`, `RESERVED` and `PAST`.
        priority: The row with the lowest one leaves first.
        seq: The number of the row's arrival, over all streams.
        cost: What it takes of the limit.
        group: The part of the buffer that it belongs to.
        stream: Its stream.
        time: Its time.
        lost: When, in the micro-batch, it ceased to be active.
        left: When it left.
    """

    def __init__(self) -> None:
        """Start without slots."""
        self.size = 0
        self.free: list[int] = []
        self.state = bytearray()
        self.priority = array("d")
        self.seq, self.cost, self.time = array("q"), array("q"), array("q")
        self.group, self.stream = array("q"), array("q")
        self.lost, self.left = array("q"), array("q")
        self._view()

    def _view(self) -> None:
        """The same memory as arrays of numpy."""
        self.states: AnyArray = np.frombuffer(self.state, np.uint8)
        self.priorities: Floats = np.frombuffer(self.priority, np.float64)
        self.seqs: Ints = np.frombuffer(self.seq, np.int64)
        self.costs: Ints = np.frombuffer(self.cost, np.int64)
        self.times: Ints = np.frombuffer(self.time, np.int64)
        self.groups: Ints = np.frombuffer(self.group, np.int64)
        self.streams: Ints = np.frombuffer(self.stream, np.int64)
        self.losts: Ints = np.frombuffer(self.lost, np.int64)
        self.lefts: Ints = np.frombuffer(self.left, np.int64)

    def take(self, count: int) -> Ints:
        """Slots for new rows."""
        missing = count - len(self.free)
        if missing > 0:
            self._grow(max(missing, self.size, _FIRST))
        taken = self.free[len(self.free) - count :]
        del self.free[len(self.free) - count :]
        return np.array(taken, np.int64)

    def _grow(self, more: int) -> None:
        """Memory that numpy looks at cannot grow, so it is copied."""
        self.state = self.state + bytearray(more)
        self.priority = self.priority + array("d", bytes(8 * more))
        empty = array("q", bytes(8 * more))
        for name in ("seq", "cost", "time", "group", "stream", "lost", "left"):
            setattr(self, name, getattr(self, name) + empty)
        self.free[:0] = range(self.size + more - 1, self.size - 1, -1)
        self.size += more
        self._view()

    def of(self, *states: int) -> Ints:
        """Slots in one of the states, in the order in which their rows arrived."""
        member = self.states == states[0]
        for state in states[1:]:
            member |= self.states == state
        found = np.flatnonzero(member)
        return found.take(self.seqs.take(found).argsort())

    def let_go(self, slots: Sequence[int]) -> None:
        """Rows are gone for good, and their slots are free."""
        for slot in slots:
            self.state[slot] = GONE
        self.free.extend(slots)
