"""A direction at work: new rows of one stream, extended hop by hop, depth first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Bools, Ints, shift
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.finders import bind
from sparkshed.engine.finding import Pairs
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import EVERYTHING, HopWatch, Probing, Reach, Span
from sparkshed.engine.statistics import DirectionCounters, HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.windows import Windows
from sparkshed.planner.physical import MOST_WINDOWS, Direction, JoinSpec

#: Results that fill less than this part of a chunk are collected into larger chunks.
_FEW = 8


class HopExec:
    """One hop: probe the target's windows, check the candidates, pass on what is left."""

    def __init__(
        self,
        spec: JoinSpec,
        direction: Direction,
        number: int,
        stores: Sequence[RowStore],
        counters: HopCounters,
    ) -> None:
        """Bind the kernel of hop `number` to the row stores."""
        origin, hop = direction.origin, direction.hops[number]
        self._number = number
        self._spec = spec
        self._limit = spec.chunk
        self._origin = origin
        self._target = hop.target
        self._stores = stores
        self._counters = counters
        self._evaluator = Evaluator(spec.ansi, stores[0].codebook)
        self._finder, self._checks = bind(spec, hop, stores, counters)
        self._last = number == len(direction.hops) - 1

    def run(
        self, source: Iterator[Partials], old: Windows, new: Windows, probing: Probing
    ) -> Iterator[Partials | Candidates]:
        """Extend partial results by old rows, and by new rows that arrived before the origin's row."""
        bucket = Bucket(self._stores, self._limit)
        share, kept = probing.thin(self._number), None
        if probing.sifts(self._number):
            kept = self._among(old.thin(share), new.thin(share))
        else:
            old, new = old.thin(share), new.thin(share)
        for partials in source:
            for found in self._extensions(partials, old, new, probing):
                candidates = found if kept is None else _only(found, kept.take(found.rows_of(self._target)))
                if not candidates.size:
                    continue
                self._counters.partials += candidates.size
                if self._last and candidates.size >= self._limit // _FEW:
                    yield candidates
                else:
                    yield from bucket.put(candidates.joined())
        yield from bucket.drain()

    def _among(self, *windows: Windows) -> Bools:
        """Which rows of the target are in the windows."""
        among = np.zeros(self._stores[self._target].size, bool)
        for own in windows:
            among[own.rows] = True
        return among

    def _extensions(
        self, partials: Partials, old: Windows, new: Windows, probing: Probing
    ) -> Iterator[Candidates]:
        low, high = partials.reach(self._target, self._spec.bounds)
        origin = partials.times(self._origin)
        cap = shift(origin, -1)[0] if self._target > self._origin else origin
        watch = probing.watch(self._number, partials, self._counters)
        for windows, latest in ((old, high), (new, np.minimum(high, cap) if new.size else high)):
            if not windows.size:
                continue
            for reach in probing.reaches(self._number):
                begin, end = reach.within(origin, low, latest)
                if watch is not None:
                    watch.begin(windows, begin, end)
                yield from self._extend(partials, windows, begin, end, reach, watch)
                if watch is not None:
                    watch.end()

    def _extend(
        self,
        partials: Partials,
        windows: Windows,
        low: Ints,
        high: Ints,
        reach: Reach | Span,
        watch: HopWatch | None,
    ) -> Iterator[Candidates]:
        probed = windows.coarse(self._factor(windows, reach))
        for pairs in self._finder.find(partials, probed, low, high):
            candidates = self._in_time(partials, pairs, low, high)
            if watch is not None:
                watch.touched(candidates)
            if candidates.size and not pairs.settled:
                candidates = _only(candidates, self._finder.verify(candidates))
            candidates = self._checked(candidates)
            if watch is not None:
                watch.matched(candidates)
            if candidates.size:
                yield candidates

    def _factor(self, windows: Windows, reach: Reach | Span) -> int:
        """How many basic windows to probe as one, so that a time range spans a moderate number."""
        bounds = self._spec.bounds
        width = reach.width(bounds[self._origin][self._target], bounds[self._target][self._origin])
        count = len(windows) if width is None else width // self._spec.basic + 2
        return 1 << max(0, (max(count - 1, 0) // MOST_WINDOWS).bit_length())

    def _in_time(self, partials: Partials, pairs: Pairs, low: Ints, high: Ints) -> Candidates:
        candidates = Candidates(self._stores, partials, self._target, pairs.picks, pairs.rows)
        if not pairs.edge:
            return candidates
        times = self._stores[self._target].times.take(pairs.rows)
        inside = (times >= pairs.picks.of(low)) & (times <= pairs.picks.of(high))
        return candidates.select(np.flatnonzero(inside))

    def _checked(self, candidates: Candidates) -> Candidates:
        for check in self._checks:
            if not candidates.size:
                break
            candidates = _only(candidates, self._evaluator.holds(check.expr, candidates))
        return candidates


def _only(candidates: Candidates, passed: Bools | None) -> Candidates:
    if passed is None or passed.all():
        return candidates
    return candidates.select(np.flatnonzero(passed))


class Bucket:
    """Coalesces small chunks of partial results, so that the next hop works on few large ones."""

    def __init__(self, stores: Sequence[RowStore], limit: int) -> None:
        """Collect up to `limit` partial results."""
        self._stores = stores
        self._limit = limit
        self._held: list[Partials] = []
        self._size = 0

    def put(self, partials: Partials) -> Iterator[Partials]:
        """Collect some; give out what no longer fits."""
        if self._size + partials.size > self._limit:
            yield from self.drain()
        self._held.append(partials)
        self._size += partials.size

    def drain(self) -> Iterator[Partials]:
        """Give out all that is held."""
        held, self._held, self._size = self._held, [], 0
        if len(held) == 1:
            yield held[0]
        elif held:
            streams = held[0].rows
            yield Partials(
                self._stores, {s: np.concatenate([part.rows[s] for part in held]) for s in streams}
            )


class DirectionExec:
    """All hops of one direction.

    Chunks are pulled through the hops one at a time, so memory stays near hops × chunk however many
    results there are::

        new rows of S_i ──▶ hop 1 ──▶ bucket ──▶ hop 2 ──▶ bucket ──▶ … ──▶ results
                            W_r1                 W_r2
    """

    def __init__(
        self, spec: JoinSpec, direction: Direction, stores: Sequence[RowStore], counters: DirectionCounters
    ) -> None:
        """Bind every hop."""
        self._origin = direction.origin
        self._targets = [hop.target for hop in direction.hops]
        self._hops = [
            HopExec(spec, direction, number, stores, counters.hops[number])
            for number in range(len(direction.hops))
        ]
        self._stores = stores
        self._limit = spec.chunk
        self._counters = counters

    def run(
        self, rows: Ints, old: Sequence[Windows], new: Sequence[Windows], probing: Probing = EVERYTHING
    ) -> Iterator[Partials | Candidates]:
        """Results whose last-arriving member is one of the given rows of the origin."""
        chunks: Iterator[Any] = self._chunks(rows)
        for target, hop in zip(self._targets, self._hops, strict=True):
            chunks = hop.run(chunks, old[target], new[target], probing)
        for results in chunks:
            self._counters.results += results.size
            yield results

    def explore(self, rows: Ints, old: Sequence[Windows], new: Sequence[Windows], probing: Probing) -> None:
        """Make the first hop only, for what can be learned from it."""
        target = self._targets[0]
        for _ in self._hops[0].run(self._chunks(rows), old[target], new[target], probing):
            pass

    def _chunks(self, rows: Ints) -> Iterator[Partials]:
        for begin in range(0, len(rows), self._limit):
            yield Partials(self._stores, {self._origin: rows[begin : begin + self._limit]})
