"""Windows that are read when rows may probe them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from sparkshed.engine.arrays import INT64_MIN, Ints
from sparkshed.engine.probing import Reach
from sparkshed.engine.windows import BasicWindow, Windows


class Unread(NamedTuple):
    """Rows of a window that are only written down: where, how many, and the time of the last one."""

    place: Any
    size: int
    last: int


#: Gets the rows of one part.
Fetch = Callable[[Any], BasicWindow]


class LazyWindows(Windows):
    """Windows of which some parts are still where they were written down.

    A window that lacks a part waits: nothing can probe it before it is read. Until then its parts stay
    in the order in which they came, so that its rows, and samples of them, are the same whenever it is
    read::

        number     7          8                      9
               ┌────────┬────────────────────────┬────────┐
               │  rows  │  unread, unread, rows  │  rows  │
               └────────┴────────────────────────┴────────┘
                          ▲ waits
    """

    def __init__(self, basic: int, seed: int = 0) -> None:
        """Start without windows, as :class:`Windows` does."""
        super().__init__(basic, seed)
        self._waiting: dict[int, list[Unread | BasicWindow]] = {}

    @property
    def numbers(self) -> set[int]:
        """Numbers of all windows, read or not."""
        return {*self._windows, *self._waiting}

    @property
    def held(self) -> int:
        """Rows of all windows, read or not."""
        return self.size + sum(map(_size, self._parts))

    @property
    def loaded(self) -> int:
        """Rows that are in memory."""
        return sum(map(_size, self._members))

    @property
    def _parts(self) -> list[Unread | BasicWindow]:
        return [part for parts in self._waiting.values() for part in parts]

    @property
    def _members(self) -> list[BasicWindow]:
        return [*super()._members, *(part for part in self._parts if isinstance(part, BasicWindow))]

    def leave(self, number: int, part: Unread) -> None:
        """Note rows of a window that came after all others of it, and leave them where they are."""
        if number not in self._waiting:
            known = self._windows.get(number)
            self._waiting[number] = [] if known is None else [known]
            self._replace(number, None)
        end = (number + 1) * self._basic - 1
        self._waiting[number].append(part._replace(last=min(part.last, end)))

    def drop(self, number: int) -> None:
        """Forget a window."""
        self._waiting.pop(number, None)
        self._replace(number, None)

    def reached(self, times: Ints, reach: Reach) -> list[int]:
        """Numbers of the windows that wait, and that a row with one of the times, which ascend, may probe."""
        numbers = sorted(self._waiting)
        first = np.array([max(INT64_MIN, number * self._basic) for number in numbers], np.int64)
        last = np.array([self._last_of(number) for number in numbers], np.int64)
        return [numbers[place] for place in np.flatnonzero(reach.meets(times, first, last)).tolist()]

    def unthinned(self, before: int) -> list[int]:
        """Numbers of the windows that wait, and that :meth:`thin_out` would thin out."""
        return [number for number in self._older(before) if number not in self.thinned]

    def read(self, number: int, fetch: Fetch) -> None:
        """Read what is missing of a window."""
        parts = self._waiting.pop(number, None)
        if parts is not None:
            members = [fetch(part.place) if isinstance(part, Unread) else part for part in parts]
            self._put(number, reduce(BasicWindow.merged, members))

    def expire(self, before: int) -> int:
        """Drop the windows whose rows are all older than `before`, read or not; return how many rows went."""
        rows = super().expire(before)
        for number in self._older(before):
            rows += sum(map(_size, self._waiting.pop(number)))
            self.thinned.discard(number)
        return rows

    def _older(self, before: int) -> list[int]:
        return [number for number in self._waiting if self._last_of(number) < before]

    def _last_of(self, number: int) -> int:
        parts = self._waiting[number]
        return max(part.last if isinstance(part, Unread) else int(part.times[-1]) for part in parts)

    def _put(self, number: int, window: BasicWindow) -> None:
        if number in self._waiting:
            self._waiting[number].append(window)
        else:
            super()._put(number, window)


def _size(part: Unread | BasicWindow) -> int:
    return part.size if isinstance(part, Unread) else len(part.rows)
