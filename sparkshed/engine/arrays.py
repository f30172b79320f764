"""Array types and the few numeric helpers that every part of the engine shares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1
DAY_US = 86_400_000_000


class Vector(NamedTuple):
    """Column values with their validity; `valid` is None when nothing is NULL.

    In expressions a vector of length one stands for a constant and broadcasts.
    """

    values: AnyArray
    valid: Bools | None

    def take(self, rows: Ints) -> Vector:
        """The given rows."""
        return Vector(self.values.take(rows), None if self.valid is None else self.valid.take(rows))

    def spread(self, picks: Picks) -> Vector:
        """The rows that the numbers name."""
        return Vector(picks.of(self.values), None if self.valid is None else picks.of(self.valid))


def both_valid(left: Bools | None, right: Bools | None) -> Bools | None:
    """Where both operands have a value."""
    if left is None:
        return right
    return left if right is None else left & right


def is_sorted(values: AnyArray) -> bool:
    """Whether the values ascend."""
    return len(values) < 2 or bool((values[1:] >= values[:-1]).all())


def shift(values: Ints, by: int) -> tuple[Ints, Bools | None]:
    """`values + by`, clamped to 64 bits; the mask says where clamping was needed."""
    if abs(by) > INT64_MAX:
        step = INT64_MAX if by > 0 else -INT64_MAX
        partly, first = shift(values, step)
        shifted, second = shift(partly, by - step)
        return shifted, second if first is None else first | (False if second is None else second)
    if not len(values) or by == 0:
        return values, None
    if by > 0:
        if int(values.max()) <= INT64_MAX - by:
            return values + by, None
        beyond = values > INT64_MAX - by
        return np.where(beyond, INT64_MAX, values + by), beyond
    if int(values.min()) >= INT64_MIN - by:
        return values + by, None
    beyond = values < INT64_MIN - by
    return np.where(beyond, INT64_MIN, values + by), beyond


_COUNTING = np.arange(1 << 18)
_COUNTING.flags.writeable = False


def counting(size: int) -> Ints:
    """0, 1, 2, …; not to be written to."""
    return _COUNTING[:size] if size <= len(_COUNTING) else np.arange(size)


class Picks:
    """Numbers with many repetitions in a row: `heads[n]` comes `sizes[n]` times, once without sizes."""

    __slots__ = ("_numbers", "heads", "size", "sizes")

    def __init__(self, heads: Ints, sizes: Ints | None = None) -> None:
        """Adopt the different numbers and how often each comes."""
        self.heads = heads
        self.sizes = sizes
        self.size = len(heads) if sizes is None else int(sizes.sum())
        self._numbers: Ints | None = heads if sizes is None else None

    @property
    def numbers(self) -> Ints:
        """All numbers, spelled out."""
        if self._numbers is None:
            self._numbers = self.heads.repeat(self.sizes)  # type: ignore[arg-type]
        return self._numbers

    def of(self, values: AnyArray) -> AnyArray:
        """The values at the numbers."""
        found = values.take(self.heads)
        return found if self.sizes is None else found.repeat(self.sizes)

    def take(self, places: Ints) -> Picks:
        """Only the numbers at the given places."""
        return Picks(self.numbers.take(places))


def repeat_ranges(starts: Ints, counts: Ints) -> Ints:
    """The numbers of all half-open ranges `[start, start + count)`, one range after the other."""
    offsets = np.cumsum(counts)
    total = int(offsets[-1])
    if total == len(counts) and (counts == 1).all():
        return starts
    out = np.repeat(starts - (offsets - counts), counts)
    out += counting(total)
    return out


def offsets_of(lengths: AnyArray) -> Ints:
    """Where each of several pieces starts when they lie one after the other, and the end of the last.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def merge_places(first: AnyArray, second: AnyArray) -> tuple[Ints, Ints]:
    """Where the items of two sorted arrays go when both are merged, the first's before equal ones.

    >>> [places.tolist() for places in merge_places(np.array([1, 3]), np.array([1, 2]))]
    [[0, 3], [1, 2]]
    """
    later: Ints = first.searchsorted(second, "right") + np.arange(len(second))
    kept = np.ones(len(first) + len(second), np.bool_)
    kept[later] = False
    return np.flatnonzero(kept), later
