"""Sets: rows that share enough items, found by the subsets they share.

Two sets that share `k` items share every subset of those. Each row is posted under the `g`-item
subsets of its items, `g` between 2 and `k`; a probe looks up its own subsets. The larger `g`, the
fewer postings a probe reads, and the more subsets there are to look up::

    k = 3, g = 2      a = {1, 4, 7, 9}     posted under 14 17 47
                      b = {1, 4, 8, 9}     looks up     14 18 48     found under 14

With items in ascending order, only the first `n - k + g` of a set with `n` items need to be combined:
the smallest `g` of `k` shared items are always among them. A pair found under several subsets counts
for the smallest one only, so it is found once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import Bools, Ints, Picks
from sparkshed.engine.collective import common_below
from sparkshed.engine.finding import Pairs
from sparkshed.engine.index import HashIndex, Needles, hashes, sorted_by
from sparkshed.engine.kernels import ScanProbe
from sparkshed.engine.lists import Codes, Lists
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.ranges import Lookup
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.sql.expr import Col

#: A set with more subsets than this is compared with every row instead.
MOST_SUBSETS = 512
#: Bits of an item's code in a key, by the size of the subset.
_BITS = {2: 31, 3: 21}
LARGEST_SUBSET = max(_BITS)


class Subsets(NamedTuple):
    """The subsets of some rows: whose, the key of each, and its largest item."""

    owners: Ints
    keys: Ints
    last: Codes


class SetRule:
    """Which subsets of a set are posted and looked up."""

    def __init__(self, least: int, size: int) -> None:
        """At least `least` shared items, found by subsets of `size` items."""
        if not 2 <= size <= min(least, LARGEST_SUBSET):
            msg = f"subsets of {size} items cannot find {least} shared items"
            raise ValueError(msg)
        self.least = least
        self.size = size
        self._longest = least
        while self.count(self._longest + 1) <= MOST_SUBSETS:
            self._longest += 1

    def counts(self, lists: Lists, rows: Ints) -> Ints:
        """How many subsets each row has, 0 for rows that :meth:`odd` names."""
        lengths = lists.offsets.take(rows + 1) - lists.offsets.take(rows)
        longest = int(lengths.max(initial=0))
        table = np.array([self.count(n) for n in range(min(longest, self._longest) + 1)])
        counts: Ints = table.take(np.where(lengths > self._longest, 0, lengths))
        counts[self.odd(lists, rows)] = 0
        return counts

    def count(self, length: int) -> int:
        """Subsets of a set with so many items."""
        return math.comb(length - self.least + self.size, self.size) if length >= self.least else 0

    def odd(self, lists: Lists, rows: Ints) -> Bools:
        """Rows that have too many subsets, or an item whose code is too large for a key."""
        ends = lists.offsets.take(rows + 1)
        odd: Bools = ends - lists.offsets.take(rows) > self._longest
        if len(lists.values) and int(lists.values.max()) >> _BITS[self.size]:
            largest = lists.values.take(np.maximum(ends - 1, 0)).astype(np.int64)
            odd |= (largest >> _BITS[self.size] > 0) & (ends > lists.offsets.take(rows))
        return odd

    def subsets(self, lists: Lists, rows: Ints) -> Subsets:
        """All subsets of the rows, rows of one length after the other."""
        lengths = lists.offsets.take(rows + 1) - lists.offsets.take(rows)
        lengths[self.counts(lists, rows) == 0] = 0
        parts = [
            self._of_length(lists, rows, np.flatnonzero(lengths == length), length)
            for length in np.unique(lengths[lengths > 0]).tolist()
        ]
        if not parts:
            return Subsets(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        owners, keys, last = zip(*parts, strict=True)
        return Subsets(np.concatenate(owners), np.concatenate(keys), np.concatenate(last))

    def _of_length(self, lists: Lists, rows: Ints, chosen: Ints, length: int) -> Subsets:
        prefix = length - self.least + self.size
        starts = lists.offsets.take(rows.take(chosen))
        items = lists.values.take(starts[:, None] + np.arange(prefix))
        picked = _combinations(prefix, self.size)
        keys = np.zeros((len(chosen), len(picked)), np.int64)
        for place in range(self.size):
            keys <<= _BITS[self.size]
            keys |= items.take(picked[:, place], axis=1)
        last = items.take(picked[:, -1], axis=1)
        return Subsets(np.repeat(chosen, len(picked)), keys.ravel(), last.ravel())


@lru_cache(maxsize=256)
def _combinations(items: int, size: int) -> Ints:
    return np.array(list(combinations(range(items), size)), np.int64).reshape(-1, size)


class SetFinder:
    """Finds rows whose set shares at least so many items with the partial result's."""

    timed = False
    searched = False
    settled = True

    def __init__(
        self,
        columns: tuple[Col, Col],
        rule: SetRule,
        stores: Sequence[RowStore],
        limit: int,
        counters: HopCounters,
    ) -> None:
        """Take the target's column and the other one."""
        self._own, self._other = columns
        self._rule = rule
        self._stores = stores
        self._limit = limit
        self._postings = Lookup(self, limit, counters)
        self._scan = Lookup(ScanProbe(), limit, counters)
        self.key: Hashable = ("sets", self._own.column, rule.least, rule.size)

    def index(self, window: BasicWindow) -> HashIndex:
        """Postings by subset; rows with too many subsets meet every probe."""
        lists = self._lists(self._own)
        rows = _valid(lists, window.rows)
        owners, keys, _ = self._rule.subsets(lists, rows)
        keys, entries = sorted_by(keys, rows.take(owners))
        return HashIndex(keys, np.concatenate([entries, rows[self._rule.odd(lists, rows)]]))

    def _lists(self, column: Col) -> Lists:
        return self._stores[column.stream].lists("sets", column.column)

    def verify(self, candidates: Candidates) -> Bools | None:
        """Pairs come counted."""
        return None

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Pairs that share enough items, within the time range."""
        lists, rows = self._lists(self._other), partials.rows[self._other.stream]
        numbers = np.arange(len(rows))
        if lists.valid is not None:
            numbers = numbers[lists.valid.take(rows)]
        counts = self._rule.counts(lists, rows.take(numbers))
        odd = self._rule.odd(lists, rows.take(numbers))
        plain = numbers[counts > 0]
        ends = np.cumsum(counts[counts > 0])
        begin = 0
        while begin < len(plain):
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(ends.searchsorted(done + self._limit, "right")))
            yield from self._by_subsets(lists, rows, plain[begin:end], windows, low, high)
            begin = end
        if odd.any():
            yield from self._by_scan(lists, rows, numbers[odd], windows, low, high)

    def _by_subsets(
        self, lists: Lists, rows: Ints, picks: Ints, windows: Windows, low: Ints, high: Ints
    ) -> Iterator[Pairs]:
        owners, keys, last = self._rule.subsets(lists, rows.take(picks))
        whose = picks.take(owners)
        lead = np.zeros(len(owners), np.bool_)
        lead[np.unique(owners, return_index=True)[1]] = True
        needles = Needles(keys, None, hashes=hashes(keys), lead=lead)
        early, late = low.take(whose), high.take(whose)
        own = self._lists(self._own)
        for found in self._postings.look_up((needles,), windows, early, late):
            pairs = self._in_time(found, early, late)
            partners = pairs.picks.of(whose)
            below, total = common_below(lists, rows.take(partners), own, pairs.rows, pairs.picks.of(last))
            once = (below == self._rule.size) | self._rule.odd(own, pairs.rows)
            kept = np.flatnonzero(once & (total >= self._rule.least))
            if len(kept):
                yield Pairs(Picks(partners.take(kept)), pairs.rows.take(kept), edge=False, settled=True)

    def _by_scan(
        self, lists: Lists, rows: Ints, picks: Ints, windows: Windows, low: Ints, high: Ints
    ) -> Iterator[Pairs]:
        early, late = low.take(picks), high.take(picks)
        own = self._lists(self._own)
        for found in self._scan.look_up((Needles(early, late),), windows, early, late):
            partners = found.picks.of(picks)
            everything = np.full(len(partners), np.iinfo(np.int32).max, np.int32)
            _, total = common_below(lists, rows.take(partners), own, found.rows, everything)
            kept = np.flatnonzero(total >= self._rule.least)
            if len(kept):
                yield Pairs(Picks(partners.take(kept)), found.rows.take(kept), edge=False, settled=True)

    def _in_time(self, found: Pairs, low: Ints, high: Ints) -> Pairs:
        if not found.edge:
            return found
        times = self._stores[self._own.stream].times.take(found.rows)
        inside = np.flatnonzero((times >= found.picks.of(low)) & (times <= found.picks.of(high)))
        return Pairs(found.picks.take(inside), found.rows.take(inside), edge=False)


def _valid(lists: Lists, rows: Ints) -> Ints:
    return rows if lists.valid is None else rows[lists.valid.take(rows)]
