"""Basic windows: the unit of storage, of indexing and of expiry."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sparkshed.engine.arrays import Ints, merge_places

_POSITIVE = (1 << 63) - 1
#: Samples of one stream that are kept up to date.
_MOST_SAMPLES = 8


class Indexer(Protocol):
    """Builds one kind of index over a basic window."""

    @property
    def key(self) -> Hashable:
        """Identifies the index, so that several directions share it."""

    def index(self, window: BasicWindow) -> Any:
        """The index of the window's rows."""


class Mergeable(Protocol):
    """An index that takes in the index of further rows without sorting its own again."""

    def merged(self, other: Any) -> Any:
        """Both indexes in one."""


class Appendable(Protocol):
    """An index by the places of rows in their window: it takes in rows that come after all of its own."""

    def appended(self, other: Any, start: int) -> Any | None:
        """Both indexes in one, the other's places from `start` on; None if they do not go together."""


class BasicWindow:
    """Rows of one clock-aligned slice of time, sorted by time, with the indexes built over them."""

    __slots__ = ("_indexes", "rows", "times")

    def __init__(self, rows: Ints, times: Ints) -> None:
        """Hold row numbers and their times, both in time order."""
        self.rows = rows
        self.times = times
        self._indexes: dict[Hashable, tuple[Indexer, Any]] = {}

    def index(self, indexer: Indexer) -> Any:
        """The index of one kind, built when first asked for."""
        known = self._indexes.get(indexer.key)
        if known is None:
            known = self._indexes[indexer.key] = (indexer, indexer.index(self))
        return known[1]

    def merged(self, other: BasicWindow) -> BasicWindow:
        """Both windows' rows in one, this one's first where times are equal.

        Neither the rows nor the indexes that exist are sorted again: sorted runs are merged. Only an index
        by places is built anew when rows come between others, out of the order of time.
        """
        follows = bool(other.times[0] >= self.times[-1])
        if follows:
            rows = np.concatenate([self.rows, other.rows])
            window = BasicWindow(rows, np.concatenate([self.times, other.times]))
        else:
            old, new = merge_places(self.times, other.times)
            window = BasicWindow(
                _interleaved(self.rows, other.rows, old, new), _interleaved(self.times, other.times, old, new)
            )
        for key, (indexer, index) in self._indexes.items():
            both = None
            if hasattr(index, "merged"):
                both = index.merged(other.index(indexer))
            elif follows and hasattr(index, "appended"):
                both = index.appended(other.index(indexer), len(self.rows))
            if both is not None:
                window._indexes[key] = (indexer, both)
        return window

    def forget(self) -> None:
        """Drop all indexes."""
        self._indexes.clear()


def _interleaved(first: Ints, second: Ints, first_places: Ints, second_places: Ints) -> Ints:
    out = np.empty(len(first) + len(second), first.dtype)
    out[first_places] = first
    out[second_places] = second
    return out


@dataclass
class _View:
    """Other windows over the same rows, and which of them are out of date."""

    factor: int
    windows: Windows
    stale: set[int] = field(default_factory=set)


def _together(members: list[BasicWindow]) -> BasicWindow:
    rows = np.concatenate([member.rows for member in members])
    return BasicWindow(rows, np.concatenate([member.times for member in members]))


def _sample(window: BasicWindow, share: float, seed: tuple[int, ...]) -> BasicWindow:
    """A share of the rows, evenly spread: row n is taken where phase + n * share passes a whole number."""
    phase = np.random.default_rng(seed).random()
    steps = np.floor(phase + share * np.arange(len(window.rows) + 1))
    kept = np.flatnonzero(steps[1:] > steps[:-1])
    return BasicWindow(window.rows.take(kept), window.times.take(kept))


class Windows:
    """The basic windows of one stream, by window number `floor(time / basic)`.

    Only windows with rows exist, so a wide range over sparse data costs nothing::

        number        7         8                  11
                 ┌─────────┬─────────┐         ┌─────────┐
        rows     │ ·· ·  · │ · ·· ·· │ (none)  │ ·    ·· │
                 └─────────┴─────────┘         └─────────┘
        first ────▲                 ▲──── last              one pair per window

    A batch replaces only the windows that it touches; all others keep their indexes. Expiry takes
    whole windows from the old end. Where a time range spans very many basic windows, :meth:`coarse`
    offers the same rows in fewer, larger ones; :meth:`thin` offers a sample of them.
    """

    def __init__(self, basic: int, seed: int = 0) -> None:
        """Start without windows; `basic` is their length in microseconds, `seed` is for samples."""
        self._basic = basic
        self._seed = seed
        self._windows: dict[int, BasicWindow] = {}
        self._numbers: list[int] = []
        self._ordered: list[BasicWindow] | None = None
        self._first: Ints = np.empty(0, np.int64)
        self._last: Ints = np.empty(0, np.int64)
        self._times: Ints | None = None
        self._views: dict[Hashable, _View] = {}
        self._shares: list[float] = []
        #: Numbers of the windows that were thinned out.
        self.thinned: set[int] = set()
        #: Rows that can be probed.
        self.size = 0

    def __len__(self) -> int:
        """How many basic windows exist."""
        return len(self._windows)

    def numbers_of(self, times: Ints) -> Ints:
        """The number of the window that each time belongs to."""
        return times // self._basic

    def rows_of(self, number: int) -> Ints:
        """Row numbers of one window, in the order of their times."""
        return self._windows[number].rows

    def empty(self) -> Windows:
        """Windows of the same length without rows."""
        return Windows(self._basic, self._seed)

    def add(self, start: int, times: Ints) -> None:
        """Add consecutive rows, numbered from `start`, whose times ascend."""
        if not len(times):
            return
        numbers = self.numbers_of(times)
        cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        begins = [0, *cuts.tolist()]
        rows = np.arange(start, start + len(times))
        for begin, end in zip(begins, [*begins[1:], len(times)], strict=True):
            self._put(int(numbers[begin]), BasicWindow(rows[begin:end], times[begin:end]))

    def absorb(self, newer: Windows) -> None:
        """Add the rows of windows that were kept apart while they were new."""
        for number, window in newer._windows.items():
            self._put(number, window)

    def _put(self, number: int, window: BasicWindow) -> None:
        known = self._windows.get(number)
        if known is None:
            insort(self._numbers, number)
        self._windows[number] = window if known is None else known.merged(window)
        self._outdate(number)
        self._changed(len(window.rows))

    def _outdate(self, number: int) -> None:
        for view in self._views.values():
            view.stale.add(number // view.factor)

    def coarse(self, factor: int) -> Windows:
        """The same rows in windows that are `factor` times as long."""
        if factor == 1:
            return self
        return self._view(factor, factor, lambda number, members: _together(members))

    def thin(self, share: float) -> Windows:
        """A share of the rows, evenly spread over each window; each row is in it with that probability.

        It stays the same as a window grows at its end.
        """
        if share >= 1:
            return self

        def sample(number: int, members: list[BasicWindow]) -> BasicWindow:
            (window,) = members
            return _sample(window, share, (self._seed, number & _POSITIVE))

        found = self._view(share, 1, sample)
        # Shares change from time to time; samples that were not asked for lately are let go.
        self._shares = [share, *(other for other in self._shares if other != share)]
        for forgotten in self._shares[_MOST_SAMPLES:]:
            del self._views[forgotten]
        del self._shares[_MOST_SAMPLES:]
        return found

    def _view(
        self, key: Hashable, factor: int, make: Callable[[int, list[BasicWindow]], BasicWindow]
    ) -> Windows:
        """Windows made of these, `factor` by `factor`; only those that changed are made again."""
        view = self._views.get(key)
        if view is None:
            numbers = {number // factor for number in self._windows}
            view = self._views[key] = _View(factor, Windows(self._basic * factor, self._seed), numbers)
        if view.stale:
            grouped: dict[int, list[BasicWindow]] = {number: [] for number in view.stale}
            for number in self._numbers if factor > 1 else sorted(view.stale):
                if number // factor in grouped and number in self._windows:
                    grouped[number // factor].append(self._windows[number])
            for number, members in grouped.items():
                view.windows._replace(number, make(number, members) if members else None)
            view.stale.clear()
        return view.windows

    def _replace(self, number: int, window: BasicWindow | None) -> None:
        known = self._windows.pop(number, None)
        if window is not None and len(window.rows):
            if known is None:
                insort(self._numbers, number)
            self._windows[number] = window
        elif known is not None:
            self._numbers.remove(number)
        before = 0 if known is None else len(known.rows)
        self._outdate(number)
        self._changed((0 if window is None else len(window.rows)) - before)

    def expire(self, before: int) -> int:
        """Drop the windows whose rows are all older than `before`; return how many rows went.

        Windows are visited from the oldest on, and the first that stays ends the walk.
        """
        rows = 0
        gone = 0
        for number in self._numbers:
            window = self._windows[number]
            if window.times[-1] >= before:
                break
            rows += len(window.rows)
            gone += 1
            self.thinned.discard(number)
            del self._windows[number]
            self._outdate(number)
        if gone:
            del self._numbers[:gone]
            self._changed(-rows)
        return rows

    def remove(self, rows: Ints, times: Ints) -> None:
        """Drop single rows, given with their times; those of windows that expired are gone already."""
        for number in np.unique(self.numbers_of(times)).tolist():
            window = self._windows.get(number)
            if window is None:
                continue
            stays = ~np.isin(window.rows, rows, assume_unique=True)
            self._replace(number, BasicWindow(window.rows[stays], window.times[stays]))
            if number not in self._windows:
                self.thinned.discard(number)

    def thin_out(self, before: int, share: float) -> tuple[Ints, int]:
        """Keep only a share of the rows of windows that are wholly older than `before`, for good.

        Each row stays with that probability, independently of :meth:`thin`. A window is thinned out once.

        Returns:
            The rows that stayed, and how many went.
        """
        kept: list[Ints] = []
        gone = 0
        for number in self._numbers[:]:
            window = self._windows[number]
            if window.times[-1] >= before:
                break
            if number not in self.thinned:
                sample = _sample(window, share, (self._seed, number & _POSITIVE, 1))
                gone += len(window.rows) - len(sample.rows)
                kept.append(sample.rows)
                self._replace(number, sample)
                self.thinned.add(number)
        return np.concatenate(kept) if kept else np.empty(0, np.int64), gone

    def _changed(self, rows: int) -> None:
        self.size += rows
        self._ordered = None
        self._times = None

    @property
    def ordered(self) -> list[BasicWindow]:
        """All windows in time order."""
        if self._ordered is None:
            self._ordered = [self._windows[number] for number in self._numbers]
            count = len(self._ordered)
            self._first = np.fromiter((w.times[0] for w in self._ordered), np.int64, count)
            self._last = np.fromiter((w.times[-1] for w in self._ordered), np.int64, count)
        return self._ordered

    @property
    def _members(self) -> list[BasicWindow]:
        """Everything that holds row numbers."""
        return self.ordered

    @property
    def extents(self) -> tuple[Ints, Ints]:
        """First and last row time of each window, in time order; both ascend."""
        _ = self.ordered
        return self._first, self._last

    @property
    def times(self) -> Ints:
        """All row times, ascending."""
        if self._times is None:
            parts = [window.times for window in self.ordered]
            self._times = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return self._times

    @property
    def rows(self) -> Ints:
        """All row numbers, in the order of their times."""
        parts = [window.rows for window in self.ordered]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def renumber(self) -> Ints:
        """Number all rows in memory 0, 1, 2, … window by window; return their former numbers."""
        members = self._members
        former = [window.rows for window in members]
        start = 0
        for window in members:
            window.rows = np.arange(start, start + len(window.rows))
            start += len(window.rows)
        self.forget()
        return np.concatenate(former) if former else np.empty(0, np.int64)

    def forget(self) -> None:
        """Drop all indexes; they are built again when needed."""
        self._views.clear()
        self._shares.clear()
        for window in self._members:
            window.forget()
