"""Probing by search: from time ranges and keys to candidate pairs, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Protocol

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools, Ints, Picks, both_valid, is_sorted, repeat_ranges
from sparkshed.engine.finding import Pairs, window_range
from sparkshed.engine.index import Found, Needles, SortedIndex
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.windows import BasicWindow, Windows


class Overlaps:
    """Which of many window ranges `[begin, end)` contain window k, without looking at all of them.

    Sorted by `begin`, the ranges that contain k lie between the first whose running maximum of
    `end` exceeds k and the last whose `begin` does not::

        begin    0 0 1 1 2 2 3
        end      2 2 3 3 4 4 5        k = 2: ranges 2 … 5
    """

    def __init__(self, begin: Ints, end: Ints, windows: int) -> None:
        """Sort the ranges over `windows` windows."""
        self._order: Ints | None = None
        if not is_sorted(begin):
            small: AnyArray = begin.astype(np.int16) if windows < 1 << 15 else begin
            self._order = small.argsort(kind="stable")
            begin, end = begin.take(self._order), end.take(self._order)
        self._end = end
        every = np.arange(windows)
        reach = np.maximum.accumulate(end)
        self._starts = reach.searchsorted(every, "right")
        self._stops = begin.searchsorted(every, "right")
        self._whole = is_sorted(end)

    def occupied(self) -> list[int]:
        """The windows that may be in some range."""
        found: list[int] = np.flatnonzero(self._starts < self._stops).tolist()
        return found

    def of(self, window: int) -> Ints:
        """Numbers of the ranges that contain the window."""
        start, stop = int(self._starts[window]), int(self._stops[window])
        if self._whole:
            return np.arange(start, stop) if self._order is None else self._order[start:stop]
        hit = np.flatnonzero(self._end[start:stop] > window)
        hit += start
        return hit if self._order is None else self._order.take(hit)


class Searched(Protocol):
    """An index that is searched by key."""

    @property
    def key(self) -> Hashable:
        """Identifies the index, so that several directions share it."""

    @property
    def timed(self) -> bool:
        """Whether the search itself respects the time range."""

    @property
    def searched(self) -> bool:
        """Whether the search counts as work: a logarithm of the stream's rows for each probe."""

    @property
    def settled(self) -> bool:
        """Whether keys that are found, and not loose, need no verification."""

    def index(self, window: BasicWindow) -> SortedIndex:
        """Sort the window's rows by key."""


class Lookup:
    """Finds candidates by looking keys up in the sorted index of each basic window."""

    def __init__(self, searched: Searched, limit: int, counters: HopCounters) -> None:
        """Form at most `limit` candidates at a time; count index entries touched."""
        self._searched = searched
        self._limit = limit
        self._counters = counters

    def look_up(self, needles: Sequence[Needles], windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Rows that all sets of needles match; needle n has the time range `[low[n], high[n]]`."""
        first, last = windows.extents
        alive: Bools | None = None
        for part in needles:
            if part.alive is not None:
                alive = both_valid(alive, part.alive if part.of is None else part.alive.take(part.of))
        begin, end = window_range(windows, low, high, alive)
        if self._searched.searched:
            self._counters.searches += int(np.count_nonzero(end > begin)) * windows.size.bit_length()
        pending = _Pending(self._limit, self._searched.settled)
        for k, picks, found in self._ranges(windows, needles, begin, end):
            index: SortedIndex = windows.ordered[k].index(self._searched)
            edge = (low.take(picks) > first[k]) | (high.take(picks) < last[k])
            if self._searched.timed:
                edge[:] = False
            elif index.times is not None:
                found = _cut(index, found, np.flatnonzero(edge), low.take(picks), high.take(picks))
                edge[:] = False
            pending.add(index, picks, found, edge)
            if pending.total >= self._limit:
                self._counters.comparisons += pending.total
                yield from pending.flush()
        self._counters.comparisons += pending.total
        yield from pending.flush()

    def _ranges(
        self, windows: Windows, needles: Sequence[Needles], begin: Ints, end: Ints
    ) -> Iterator[tuple[int, Ints, Found]]:
        """Per window: partial results with candidates in it, and where these are in the index."""
        by_pick = Overlaps(begin, end, len(windows))
        searches = [_Search(part, begin, end, len(windows)) for part in needles]
        for k in by_pick.occupied():
            picks = by_pick.of(k)
            if not len(picks):
                continue
            index: SortedIndex = windows.ordered[k].index(self._searched)
            if len(index.rows) > len(index.keys):
                lead = needles[0].lead
                meeting = picks if lead is None else picks[lead.take(picks)]
                sizes = np.zeros(len(meeting), np.int64)
                everyone = Found(sizes + len(index.keys), sizes + len(index.rows), sizes == 0)
                yield k, meeting, everyone
            found = searches[0].run(index, k, picks)
            for search in searches[1:]:
                found = found.both(search.run(index, k, picks))
            hit = np.flatnonzero(found.stop > found.start)
            if len(hit) == len(picks):
                yield k, picks, found
            elif len(hit):
                yield k, picks.take(hit), found.take(hit)


def _cut(index: SortedIndex, found: Found, edge: Ints, low: Ints, high: Ints) -> Found:
    """The matches without those of the given needles that are out of time."""
    if not len(edge):
        return found
    inside = index.within(found.take(edge), low.take(edge), high.take(edge))
    start, stop = found.start.copy(), found.stop.copy()
    start[edge], stop[edge] = inside.start, inside.stop
    return Found(start, stop, found.loose)


class Probe(Searched, Protocol):
    """An index with search keys for each partial result."""

    def needles(self, partials: Partials, low: Ints, high: Ints) -> Sequence[Needles]:
        """Search keys of the partial results, whose time range is `[low, high]`; all have to match."""

    def verify(self, candidates: Candidates) -> Bools | None:
        """Which candidates really have the key; None if all do."""


class RangeFinder:
    """Finds candidates by one search for each partial result, or for each distinct key among them."""

    def __init__(self, probe: Probe, limit: int, counters: HopCounters) -> None:
        """Form at most `limit` candidates at a time; count index entries touched."""
        self._probe = probe
        self._lookup = Lookup(probe, limit, counters)

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Candidates of every partial result n with time in `[low[n], high[n]]`."""
        return self._lookup.look_up(self._probe.needles(partials, low, high), windows, low, high)

    def verify(self, candidates: Candidates) -> Bools | None:
        """Which candidates really have the key; None if all do."""
        return self._probe.verify(candidates)


class _Search:
    """Searches each needle once per window, however many partial results share it."""

    def __init__(self, needles: Needles, begin: Ints, end: Ints, windows: int) -> None:
        self._needles = needles
        if needles.of is None:
            return
        size = len(needles.low)
        earliest = np.full(size, windows)
        latest = np.zeros(size, np.int64)
        np.minimum.at(earliest, needles.of, begin)
        np.maximum.at(latest, needles.of, end)
        self._overlaps = Overlaps(earliest, latest, windows)
        self._start = np.zeros(size, np.int64)
        self._stop = np.zeros(size, np.int64)
        self._loose = np.zeros(size, np.bool_)

    def run(self, index: SortedIndex, window: int, picks: Ints) -> Found:
        of = self._needles.of
        if of is None:
            return index.search(self._needles, picks)
        chosen = self._overlaps.of(window)
        found = index.search(self._needles, chosen)
        self._start[chosen], self._stop[chosen] = found.start, found.stop
        if found.loose is not None:
            self._loose[chosen] = found.loose
        loose = None if found.loose is None else self._loose
        return Found(self._start, self._stop, loose).take(of.take(picks))


class _Pending:
    """Index ranges of several windows, collected so that small windows are not expanded one by one."""

    def __init__(self, limit: int, settled: bool) -> None:
        self._limit = limit
        self._settled = settled
        self._reset()

    def _reset(self) -> None:
        self._parts: list[tuple[Ints, Ints, Ints, AnyArray]] = []
        self._rows: list[Ints] = []
        self._offset = 0
        self.total = 0

    def add(self, index: SortedIndex, picks: Ints, found: Found, edge: Bools) -> None:
        if not self._rows or self._rows[-1] is not index.rows:
            self._offset += len(self._rows[-1]) if self._rows else 0
            self._rows.append(index.rows)
        counts = found.stop - found.start
        if not counts.all():
            some = np.flatnonzero(counts)
            picks, found, edge = picks.take(some), found.take(some), edge.take(some)
            counts = counts.take(some)
        flags = edge.view(np.int8)
        if found.loose is not None:
            flags = flags | (found.loose.view(np.int8) << 1)
        self._parts.append((picks, found.start + self._offset, counts, flags))
        self.total += int(counts.sum())

    def flush(self) -> Iterator[Pairs]:
        if not self._parts:
            return
        rows = _joined(self._rows)
        picks, start, counts, flags = (_joined(list(column)) for column in zip(*self._parts, strict=True))
        self._reset()
        for flag in range(4):
            chosen = np.flatnonzero(flags == flag)
            settled = self._settled and flag < 2
            for pairs in _expand(rows, picks, start, counts, chosen, self._limit):
                yield Pairs(*pairs, edge=bool(flag & 1), settled=settled)


def _joined(parts: list[AnyArray]) -> AnyArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _expand(
    rows: Ints, picks: Ints, start: Ints, counts: Ints, chosen: Ints, limit: int
) -> Iterator[tuple[Picks, Ints]]:
    """Spell the chosen ranges out, at most `limit` pairs at a time; a long range may be cut anywhere."""
    if len(chosen) < len(picks):
        picks, start, counts = picks.take(chosen), start.take(chosen), counts.take(chosen)
    stops = np.cumsum(counts)
    total = int(stops[-1]) if len(stops) else 0
    for begin in range(0, total, limit):
        end = min(begin + limit, total)
        i, j = int(stops.searchsorted(begin, "right")), int(stops.searchsorted(end)) + 1
        starts, sizes = start[i:j].copy(), counts[i:j].copy()
        skipped = begin - int(stops[i] - counts[i])
        starts[0] += skipped
        sizes[0] -= skipped
        sizes[-1] -= int(stops[j - 1]) - end
        yield Picks(picks[i:j], sizes), rows.take(repeat_ranges(starts, sizes))
