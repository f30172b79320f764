"""Codes that two lists share: overlaps of sets and inner products of maps, for many pairs at once.

Short lists are compared position by position, one vector comparison for each pair of positions.
Long or uneven lists are searched: all codes of a block of pairs become keys (pair, code), and the
keys of one side are looked up among the sorted keys of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import AnyArray, Ints
from sparkshed.engine.lists import Codes, Doubles, Lists

#: Pairs are worked on in blocks with about this many codes, so that temporaries stay in cache.
_BLOCK_CODES = 1 << 17
_MOST_PAIRS = 1 << 14
_LEAST_PAIRS = 1 << 10
#: Measured, in nanoseconds: compare two codes, the same for a product of weights, call numpy.
_COMPARE, _MULTIPLY, _CALL = 1.4, 2.6, 2000.0
#: Search for one key, make one, sort one.
_SEARCH, _MAKE, _SORT = 35.0, 10.0, 35.0
#: Counts and positions up to here fit 8 bits.
_MOST_POSITIONS = 127
_NO_CODE = -1


class Side(NamedTuple):
    """One side of a block of pairs: pair n has `lists.values[starts[n]:starts[n] + lengths[n]]`."""

    lists: Lists
    starts: Ints
    lengths: Ints

    @property
    def positions(self) -> int:
        """Length of the longest list."""
        return int(self.lengths.max())

    def take(self, pairs: Ints) -> Side:
        """Only the given pairs."""
        return Side(self.lists, self.starts.take(pairs), self.lengths.take(pairs))

    def cut(self) -> Iterator[Codes]:
        """Codes by position, without the lists that are shorter; the lists are ordered by length."""
        counts = np.bincount(self.lengths)
        alive = len(self.starts) - np.cumsum(counts)
        for i, count in enumerate(alive[:-1].tolist()):
            yield self.lists.values.take(self.starts[:count] + i)

    def padded(self) -> list[Codes]:
        """Codes by position; no code where a list is shorter."""
        shortest = int(self.lengths.min())
        columns = []
        for i in range(self.positions):
            column = self.lists.values.take(self.starts + i, mode="clip")
            if i >= shortest:
                column[self.lengths <= i] = _NO_CODE
            columns.append(column)
        return columns

    def keys(self) -> tuple[Ints, Ints]:
        """A key (pair, code) for each code, pair after pair, and the code's place in the lists."""
        pairs: Ints = np.arange(len(self.starts)).repeat(self.lengths)
        before: Ints = np.cumsum(self.lengths) - self.lengths
        places = (self.starts - before).take(pairs)
        places += np.arange(len(pairs))
        pairs <<= 32
        pairs |= self.lists.values.take(places)
        return pairs, places


def _side(lists: Lists, rows: Ints) -> Side:
    starts = lists.offsets.take(rows)
    return Side(lists, starts, lists.offsets.take(rows + 1) - starts)


def _blocks(
    left: Lists, left_rows: Ints, right: Lists, right_rows: Ints
) -> Iterator[tuple[slice, Side, Side]]:
    """The pairs in blocks; none if a side has no codes at all, because then nothing is shared."""
    if not len(left.values) or not len(right.values):
        return
    mean = sum(len(side.values) / (len(side.offsets) - 1) for side in (left, right))
    step = min(_MOST_PAIRS, max(_LEAST_PAIRS, int(_BLOCK_CODES / max(mean, 1.0))))
    for begin in range(0, len(left_rows), step):
        block = slice(begin, begin + step)
        ours, theirs = _side(left, left_rows[block]), _side(right, right_rows[block])
        if ours.positions and theirs.positions:
            yield block, ours, theirs


def _is_short(left: Side, right: Side, compare: float, sort: float) -> bool:
    """Whether comparing all positions is cheaper than a search, given the costs per code."""
    down = right.positions
    if max(left.positions, down) > _MOST_POSITIONS:
        return False
    ours, theirs = int(left.lengths.sum()), int(right.lengths.sum())
    search = 20 * _CALL + ours * _SEARCH + (ours + theirs) * _MAKE + theirs * sort
    return ours * down * compare + left.positions * down * _CALL <= search


def _by_length(left: Side, right: Side) -> tuple[Ints | None, Side, Side]:
    """The pairs with the longest left lists first, so that every position has fewer pairs to compare."""
    if left.lengths.min() == left.lengths.max():
        return None, left, right
    order = (-left.lengths).astype(np.int16).argsort(kind="stable")
    return order, left.take(order), right.take(order)


def _restored(found: AnyArray, order: Ints | None) -> AnyArray:
    if order is None:
        return found
    out = np.empty_like(found)
    out[order] = found
    return out


def overlap(left: Lists, left_rows: Ints, right: Lists, right_rows: Ints) -> Codes:
    """For each pair of rows, how many codes both have. The lists ascend."""
    return _common(left, left_rows, right, right_rows, None)[1]


def common_below(
    left: Lists, left_rows: Ints, right: Lists, right_rows: Ints, last: Codes
) -> tuple[Codes, Codes]:
    """For each pair of rows, how many common codes are `last[n]` or less, and how many there are."""
    return _common(left, left_rows, right, right_rows, last)


def _common(
    left: Lists, left_rows: Ints, right: Lists, right_rows: Ints, last: Codes | None
) -> tuple[Codes, Codes]:
    below = np.zeros(0 if last is None else len(left_rows), np.int32)
    total = np.zeros(len(left_rows), np.int32)
    for block, ours, theirs in _blocks(left, left_rows, right, right_rows):
        limit = None if last is None else last[block]
        if _is_short(ours, theirs, _COMPARE, 0.0):
            some, every = _compare_all(ours, theirs, limit)
        else:
            some, every = _search(ours, theirs, limit)
        total[block] = every
        if last is not None:
            below[block] = some
    return below, total


def _compare_all(left: Side, right: Side, last: Codes | None) -> tuple[AnyArray, AnyArray]:
    order, left, right = _by_length(left, right)
    limit = last if last is None or order is None else last.take(order)
    size = len(left.starts)
    some, every = np.zeros(size, np.int8), np.zeros(size, np.int8)
    columns = right.padded()
    for ours in left.cut():
        alive = len(ours)
        hits, same = np.zeros(alive, np.int8), np.empty(alive, np.bool_)
        for theirs in columns:
            np.equal(ours, theirs[:alive], out=same)
            hits += same.view(np.int8)
        every[:alive] += hits
        if limit is not None:
            some[:alive] += hits * (ours <= limit[:alive])
    return _restored(some, order), _restored(every, order)


def _search(left: Side, right: Side, last: Codes | None) -> tuple[AnyArray, AnyArray]:
    few, many = sorted((left.keys()[0], right.keys()[0]), key=len)
    common = few[_find(few, many)[0]]
    pairs = common >> 32
    size = len(left.starts)
    every = np.bincount(pairs, minlength=size)
    if last is None:
        return every, every
    inside = common.astype(np.int32) <= last.take(pairs)
    return np.bincount(pairs[inside], minlength=size), every


def _find(needles: Ints, keys: Ints) -> tuple[AnyArray, Ints]:
    """Which needles are among the sorted keys, and where those are."""
    places = keys.searchsorted(needles)
    places[places == len(keys)] = 0
    hit = keys.take(places) == needles
    return hit, places[hit]


def map_dot(left: Lists, left_rows: Ints, right: Lists, right_rows: Ints) -> Doubles:
    """For each pair of rows, the sum of the products of the weights of common keys.

    The products are added in the order of the left map, as Spark adds them. Of equal keys in the right
    map, which Spark does not make but a file may have, the first counts.
    """
    sums = np.zeros(len(left_rows))
    with np.errstate(all="ignore"):
        for block, ours, theirs in _blocks(left, left_rows, right, right_rows):
            short = _is_short(ours, theirs, _MULTIPLY, _SORT)
            sums[block] = (_products_of_all if short else _products_found)(ours, theirs)
    return sums


def _products_of_all(left: Side, right: Side) -> Doubles:
    x, y = left.lists.weights, right.lists.weights
    assert x is not None and y is not None
    order, left, right = _by_length(left, right)
    sums = np.zeros(len(left.starts))
    columns = right.padded()
    for i, ours in enumerate(left.cut()):
        alive = len(ours)
        found, step, same = np.zeros(alive, np.int8), np.empty(alive, np.int8), np.empty(alive, np.bool_)
        for j, theirs in enumerate(columns):
            np.equal(ours, theirs[:alive], out=same)
            np.multiply(same.view(np.int8), np.int8(len(columns) - j), out=step)
            np.maximum(found, step, out=found)
        pairs = np.flatnonzero(found)
        there = right.starts.take(pairs) + (len(columns) - found.take(pairs))
        sums[pairs] += x.take(left.starts.take(pairs) + i) * y.take(there)
    return _restored(sums, order)


def _products_found(left: Side, right: Side) -> Doubles:
    x, y = left.lists.weights, right.lists.weights
    assert x is not None and y is not None
    needles, ours = left.keys()
    keys, theirs = right.keys()
    order = keys.argsort(kind="stable")
    hit, found = _find(needles, keys.take(order))
    products = x.take(ours[hit]) * y.take(theirs.take(order.take(found)))
    # Weights are added one by one in their order, starting from 0.0.
    return np.bincount(needles[hit] >> 32, products, len(left.starts)).astype(np.float64, copy=False)
