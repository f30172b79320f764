"""Input buffers: rows wait in them until the join takes them, and are lost where there is no room."""

from __future__ import annotations

from collections import deque
from math import inf

import pyarrow as pa

SECOND = 1_000_000


class Feed:
    """One stream: the rows that are still to come, and a buffer of those that wait.

    rows   · · · · · · │ · · │   lost   │ · · · · ·
           taken       │ wait│          │ to come
                             ▲ buffer full
    """

    def __init__(self, table: pa.Table, size: int) -> None:
        """Let the rows of a table, in the order of their times, come to a buffer of `size` rows."""
        self._table = table
        self.times = table.column("ts").cast(pa.int64()).to_numpy() / SECOND
        self._size = size
        self._next = 0
        self._waiting: deque[tuple[int, int]] = deque()
        self.held = 0

    def arrive(self, until: float, *, limited: bool) -> tuple[int, int]:
        """Let rows come until a time; returns how many came, and how many of these were lost.

        A CPU that has nothing to do takes rows as they come: then the buffer does not limit them.
        """
        end = int(self.times.searchsorted(until, "right"))
        came = max(0, end - self._next)
        kept = max(0, min(came, self._size - self.held)) if limited else came
        if kept:
            self._waiting.append((self._next, self._next + kept))
            self.held += kept
        self._next = max(self._next, end)
        return came, came - kept

    @property
    def oldest(self) -> float:
        """The time of the first row that waits; infinite if none does."""
        return float(self.times[self._waiting[0][0]]) if self._waiting else inf

    def take(self, until: float) -> pa.Table | None:
        """The waiting rows up to a time; None if there are none."""
        end = int(self.times.searchsorted(until, "right"))
        parts = []
        while self._waiting and self._waiting[0][0] < end:
            begin, stop = self._waiting.popleft()
            if stop > end:
                self._waiting.appendleft((end, stop))
                stop = end
            parts.append(self._table.slice(begin, stop - begin))
            self.held -= stop - begin
        return pa.concat_tables(parts) if parts else None
