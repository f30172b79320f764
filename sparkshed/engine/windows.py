"""Basic windows: the unit of storage, of indexing and of expiry."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools, Ints


class Index(NamedTuple):
    """The rows of a basic window in key order.

    `keys` covers the first `len(keys)` rows; rows after them are candidates of every probe. For
    equality, `ends` gives for each position where its run of equal keys ends, and `present` marks
    the hashes of existing keys, because most probes of a basic window find nothing.
    """

    keys: AnyArray
    rows: Ints
    ends: Ints | None = None
    present: Bools | None = None


class BasicWindow:
    """Rows of one clock-aligned slice of time, sorted by time, with the indexes built over them."""

    __slots__ = ("indexes", "rows", "times")

    def __init__(self, rows: Ints, times: Ints) -> None:
        """Hold row numbers and their times, both in time order."""
        self.rows = rows
        self.times = times
        self.indexes: dict[Hashable, Index] = {}

    def merged(self, other: BasicWindow) -> BasicWindow:
        """Both windows' rows in one, this one's first where times are equal."""
        rows = np.concatenate([self.rows, other.rows])
        times = np.concatenate([self.times, other.times])
        if other.times[0] < self.times[-1]:
            order = times.argsort(kind="stable")
            rows, times = rows.take(order), times.take(order)
        return BasicWindow(rows, times)


class Windows:
    """The basic windows of one stream, by window number `floor(time / basic)`.

    Only windows with rows exist, so a wide range over sparse data costs nothing::

        number        7         8                  11
                 ┌─────────┬─────────┐         ┌─────────┐
        rows     │ ·· ·  · │ · ·· ·· │ (none)  │ ·    ·· │
                 └─────────┴─────────┘         └─────────┘
        first ────▲                 ▲──── last              one pair per window

    A batch replaces only the windows that it touches; all others keep their indexes. Where a time
    range spans very many basic windows, :meth:`coarse` offers the same rows in fewer, larger ones.
    """

    def __init__(self, basic: int) -> None:
        """Start without windows; `basic` is their length in microseconds."""
        self._basic = basic
        self._windows: dict[int, BasicWindow] = {}
        self._ordered: list[BasicWindow] | None = None
        self._first: Ints = np.empty(0, np.int64)
        self._last: Ints = np.empty(0, np.int64)
        self._coarse: dict[int, Windows] = {}
        self._stale: dict[int, set[int]] = {}
        self.size = 0

    def __len__(self) -> int:
        """How many basic windows exist."""
        return len(self._windows)

    def add(self, start: int, times: Ints) -> None:
        """Add consecutive rows, numbered from `start`, whose times ascend."""
        if not len(times):
            return
        numbers = times // self._basic
        cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        begins = [0, *cuts.tolist()]
        rows = np.arange(start, start + len(times))
        for begin, end in zip(begins, [*begins[1:], len(times)], strict=True):
            self._put(int(numbers[begin]), BasicWindow(rows[begin:end], times[begin:end]))
        self._changed(len(times))

    def absorb(self, newer: Windows) -> None:
        """Add the rows of windows that were kept apart while they were new."""
        for number, window in newer._windows.items():
            self._put(number, window)
        self._changed(newer.size)

    def _put(self, number: int, window: BasicWindow) -> None:
        known = self._windows.get(number)
        self._windows[number] = window if known is None else known.merged(window)
        self._outdate(number)

    def _outdate(self, number: int) -> None:
        for factor, stale in self._stale.items():
            stale.add(number // factor)

    def coarse(self, factor: int) -> Windows:
        """The same rows in windows that are `factor` times as long."""
        if factor == 1:
            return self
        if factor not in self._coarse:
            self._coarse[factor] = Windows(self._basic * factor)
            self._stale[factor] = {number // factor for number in self._windows}
        coarse, stale = self._coarse[factor], self._stale[factor]
        grouped: dict[int, list[BasicWindow]] = {number: [] for number in stale}
        if stale:
            for number in sorted(self._windows):
                if number // factor in grouped:
                    grouped[number // factor].append(self._windows[number])
        for number, members in grouped.items():
            coarse._windows.pop(number, None)
            if members:
                rows = np.concatenate([member.rows for member in members])
                coarse._windows[number] = BasicWindow(rows, np.concatenate([w.times for w in members]))
        if stale:
            coarse._changed(self.size - coarse.size)
            stale.clear()
        return coarse

    def expire(self, before: int) -> int:
        """Drop the windows whose rows are all older than `before`; return how many rows went."""
        gone = [number for number, window in self._windows.items() if window.times[-1] < before]
        rows = sum(len(self._windows.pop(number).rows) for number in gone)
        for number in gone:
            self._outdate(number)
        self._changed(-rows)
        return rows

    def _changed(self, rows: int) -> None:
        self.size += rows
        self._ordered = None

    @property
    def ordered(self) -> list[BasicWindow]:
        """All windows in time order."""
        if self._ordered is None:
            self._ordered = [self._windows[number] for number in sorted(self._windows)]
            count = len(self._ordered)
            self._first = np.fromiter((w.times[0] for w in self._ordered), np.int64, count)
            self._last = np.fromiter((w.times[-1] for w in self._ordered), np.int64, count)
        return self._ordered

    @property
    def extents(self) -> tuple[Ints, Ints]:
        """First and last row time of each window, in time order; both ascend."""
        _ = self.ordered
        return self._first, self._last

    def renumber(self) -> Ints:
        """Number all rows 0, 1, 2, … in time order; return their former numbers."""
        former = [window.rows for window in self.ordered]
        start = 0
        for window in self.ordered:
            window.rows = np.arange(start, start + len(window.rows))
            start += len(window.rows)
        self.forget()
        return np.concatenate(former) if former else np.empty(0, np.int64)

    def forget(self) -> None:
        """Drop all indexes; they are built again when needed."""
        self._coarse.clear()
        self._stale.clear()
        for window in self._windows.values():
            window.indexes.clear()
