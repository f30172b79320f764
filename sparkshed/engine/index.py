"""Sorted indexes of a basic window, and searches in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkshed.engine.arrays import AnyArray, Bools, Ints, merge_places


class Needles(NamedTuple):
    """What to search for: keys in `[low, high]`, or exactly `low` when `high` is None.

    `of[n]` is the needle of partial result n (None: its own). Needles that are not `alive` match
    nothing; those in `every` match all keys. `hashes` spread equality keys over 32 bits. Rows outside
    the keys meet every partial result, or those that `lead` says. Keys in the range `inner` match for
    certain; with others in `[low, high]` rounding decides.
    """

    low: AnyArray
    high: AnyArray | None
    of: Ints | None = None
    alive: Bools | None = None
    every: Bools | None = None
    hashes: npt.NDArray[np.uint32] | None = None
    lead: Bools | None = None
    inner: tuple[AnyArray, AnyArray] | None = None


class Found(NamedTuple):
    """Where the matches of some needles are: `[start, stop)`; `loose` where they must be verified."""

    start: Ints
    stop: Ints
    loose: Bools | None = None

    def take(self, numbers: Ints) -> Found:
        """The matches of some of the needles."""
        loose = None if self.loose is None else self.loose.take(numbers)
        return Found(self.start.take(numbers), self.stop.take(numbers), loose)

    def both(self, other: Found) -> Found:
        """What two needles match in the same index."""
        loose = self.loose
        if other.loose is not None:
            loose = other.loose if loose is None else loose | other.loose
        return Found(np.maximum(self.start, other.start), np.minimum(self.stop, other.stop), loose)


class SortedIndex:
    """The rows of a basic window in key order.

    `keys` covers the first `len(keys)` rows; rows after them are candidates of every probe. With
    `times`, one for each row, rows with the same key are in time order.
    """

    __slots__ = ("keys", "rows", "times")

    def __init__(self, keys: AnyArray, rows: Ints, times: Ints | None = None) -> None:
        """Adopt keys in order, and the rows they belong to."""
        self.keys = keys
        self.rows = rows
        self.times = times

    def search(self, needles: Needles, chosen: Ints) -> Found:
        """The range of keys that matches each chosen needle."""
        assert needles.high is not None
        start: Ints = self.keys.searchsorted(needles.low.take(chosen))
        stop: Ints = self.keys.searchsorted(needles.high.take(chosen), "right")
        loose = self._loose(needles.inner, chosen, start, stop)
        if needles.every is not None:
            every = needles.every.take(chosen)
            start[every] = 0
            stop[every] = len(self.keys)
            loose = every if loose is None else loose | every
        return Found(start, stop, loose)

    def _loose(
        self, inner: tuple[AnyArray, AnyArray] | None, chosen: Ints, start: Ints, stop: Ints
    ) -> Bools | None:
        """Where the first or the last key found is outside the inner range."""
        if inner is None or not len(self.keys):
            return None
        last = len(self.keys) - 1
        certain = self.keys.take(np.minimum(start, last)) >= inner[0].take(chosen)
        certain &= self.keys.take(np.clip(stop - 1, 0, last)) <= inner[1].take(chosen)
        return None if certain.all() else ~certain

    def merged(self, other: SortedIndex) -> SortedIndex:
        """Both indexes in one, by merging."""
        own, extra = len(self.keys), len(other.keys)
        here, there = merge_places(self.keys, other.keys)
        keys = np.empty(own + extra, self.keys.dtype)
        keys[here], keys[there] = self.keys, other.keys
        rows = np.empty(len(self.rows) + len(other.rows), np.int64)
        rows[here], rows[there] = self.rows[:own], other.rows[:extra]
        rows[own + extra :] = np.concatenate([self.rows[own:], other.rows[extra:]])
        times: Ints | None = None
        if self.times is not None and other.times is not None and _follows(self.times, other.times):
            times = np.empty(own + extra, np.int64)
            times[here], times[there] = self.times, other.times
        return type(self)(keys, rows, times)

    def within(self, found: Found, low: Ints, high: Ints) -> Found:
        """Only the matches whose times are in `[low, high]`, of needles that match one key each."""
        assert self.times is not None
        start = _bisect(np.less, self.times, found.start, found.stop, low)
        return Found(start, _bisect(np.less_equal, self.times, start, found.stop, high), found.loose)


class HashIndex(SortedIndex):
    """A sorted index for exact keys.

    `ends` gives for each position where its run of equal keys ends; `present` marks the hashes of
    existing keys, because most probes of a basic window find nothing.
    """

    __slots__ = ("ends", "present")

    def __init__(self, keys: Ints, rows: Ints, times: Ints | None = None) -> None:
        """Find the runs of equal keys, and hash them."""
        super().__init__(keys, rows, times)
        last = np.append(np.flatnonzero(keys[1:] != keys[:-1]), len(keys) - 1)[: len(keys)]
        self.ends: Ints = np.repeat(last + 1, np.diff(last, prepend=-1))
        self.present: Bools = np.zeros(1 << (8 * len(keys)).bit_length(), np.bool_)
        self.present[_buckets(hashes(keys), len(self.present))] = True

    def search(self, needles: Needles, chosen: Ints) -> Found:
        """The run of keys that equals each chosen needle."""
        start, stop = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
        if not len(self.keys):
            return Found(start, stop)
        assert needles.hashes is not None
        likely = np.flatnonzero(self.present.take(_buckets(needles.hashes.take(chosen), len(self.present))))
        low = needles.low.take(chosen.take(likely))
        found: Ints = self.keys.searchsorted(low)
        place = np.minimum(found, len(self.keys) - 1)
        start[likely] = found
        stop[likely] = np.where(self.keys.take(place) == low, self.ends.take(place), found)
        return Found(start, stop)


def _follows(times: Ints, later: Ints) -> bool:
    """Whether all of the second times come after all of the first."""
    return not len(times) or not len(later) or int(times.max()) <= int(later.min())


def _bisect(precedes: np.ufunc, times: Ints, start: Ints, stop: Ints, bound: Ints) -> Ints:
    """The first place in each `[start, stop)`, where times ascend, that does not precede the bound."""
    left, right = start.copy(), stop.copy()
    open_ = np.flatnonzero(left < right)
    while len(open_):
        low, high = left.take(open_), right.take(open_)
        middle = (low + high) >> 1
        before = precedes(times.take(middle), bound.take(open_))
        left[open_] = np.where(before, middle + 1, low)
        right[open_] = np.where(before, high, middle)
        open_ = open_[np.where(before, middle + 1 < high, low < middle)]
    return left


def sorted_by(keys: AnyArray, rows: Ints) -> tuple[AnyArray, Ints]:
    """Keys in order, with their rows."""
    order = keys.argsort(kind="stable")
    return keys.take(order), rows.take(order)


def hashes(keys: Ints) -> npt.NDArray[np.uint32]:
    """The high bits of a multiplicative hash."""
    spread = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (spread >> np.uint64(32)).astype(np.uint32)


def _buckets(hashed: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.uint32]:
    """Bucket numbers in a table whose size is a power of two."""
    return hashed >> np.uint32(33 - size.bit_length())
