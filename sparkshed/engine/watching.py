"""Learning from rows that are joined in full: what each hop touches and finds, slice by slice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.engine.arrays import Ints, shift
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.windows import Windows
from sparkshed.planner.harvest.tally import DirectionTally, Floats, HopTally
from sparkshed.planner.slices import Slices

#: Partial results whose time ranges are counted slice by slice; of more, a sample.
_COUNTED = 256


class DirectionWatch:
    """Watches the hops of one direction, and adds what they meet to its tally."""

    def __init__(
        self,
        origin: int,
        order: Sequence[int],
        slices: Sequence[Slices],
        stores: Sequence[RowStore],
        tally: DirectionTally,
        thin: float,
        histograms: Sequence[Floats] | None = None,
    ) -> None:
        """Watch rows that see a share `thin` of each window.

        `histograms`, one per stream, get the lags of results against the first stream.
        """
        self._origin = origin
        self._order = order
        self._slices = slices
        self._stores = stores
        self._tally = tally
        self._thin = thin
        self._histograms = histograms

    def hop(self, number: int, partials: Partials, counters: HopCounters) -> _HopWatch:
        """Watch some partial results at hop `number`."""
        joined = frozenset([self._origin, *self._order[:number]])
        target, slices = self._order[number], self._slices[number]
        tally = self._tally.hop((joined, target), slices.count)
        tally.probes += partials.size * self._thin
        return _HopWatch(tally, slices, partials.times(self._origin), self._stores[target], counters)

    def results(self, results: Partials | Candidates, rows: Sequence[Ints]) -> list[Ints]:
        """Count results by slice for each stream of the order; returns the places of their slices."""
        times = self._stores[self._origin].times.take(results.rows_of(self._origin))
        places = []
        for target, slices, own in zip(self._order, self._slices, rows, strict=True):
            found = slices.places(times, self._stores[target].times.take(own))
            self._tally.lag(target, slices.count)[:] += np.bincount(found, minlength=slices.count)
            places.append(found)
        self._tally.results += results.size
        if self._histograms is not None:
            self._add_lags(results, self._histograms)
        return places

    def _add_lags(self, results: Partials | Candidates, histograms: Sequence[Floats]) -> None:
        """Count T_l - T_1 of results, in basic windows, bucket by bucket."""
        basic = self._slices[0].basic
        first = self._stores[0].times.take(results.rows_of(0))
        for stream, counts in enumerate(histograms[1:], 1):
            lags = (self._stores[stream].times.take(results.rows_of(stream)) - first) // basic
            middle = len(counts) // 2
            counts += np.bincount(np.clip(lags + middle, 0, len(counts) - 1), minlength=len(counts))


def _rows_by_slice(times: Ints, origin: Ints, low: Ints, high: Ints, slices: Slices) -> Floats:
    """Rows in each slice of the time ranges `[low, high]`, summed over the probing rows."""
    step = -(-len(origin) // _COUNTED)
    origin, floor, high = origin[::step], shift(low[::step], -1)[0], high[::step]
    # The edges between slices, from the latest to the earliest, cut to the time range.
    edges = origin[None, :] - slices.basic * np.arange(slices.first, slices.last + 2)[:, None]
    edges[0], edges[-1] = high, floor
    np.clip(edges, floor, np.maximum(high, floor), out=edges)
    places = times.searchsorted(edges, "right")
    counts: Floats = (places[:-1] - places[1:]).sum(axis=1) * float(step)
    return counts


class _HopWatch:
    """Some partial results at one hop."""

    def __init__(
        self, tally: HopTally, slices: Slices, times: Ints, target: RowStore, counters: HopCounters
    ) -> None:
        self._tally = tally
        self._slices = slices
        self._times = times
        self._target = target
        self._counters = counters

    def begin(self, windows: Windows, low: Ints, high: Ints) -> None:
        """They probe windows, each in its time range."""
        self._before = (self._counters.comparisons, self._counters.searches)
        self._entries = np.zeros(self._slices.count)
        self._pairs = _rows_by_slice(windows.times, self._times, low, high, self._slices)

    def touched(self, candidates: Candidates) -> None:
        """Candidates in time, before they are checked."""
        self._entries += self._by_slice(candidates)

    def matched(self, candidates: Candidates) -> None:
        """Those that passed all checks."""
        self._tally.partials += self._by_slice(candidates)

    def end(self) -> None:
        """Spread the work over the slices: one unit where a candidate was, the rest by rows in time."""
        compared, searched = self._before
        work = self._counters.comparisons - compared
        self._tally.searches += self._counters.searches - searched
        entries, pairs = float(self._entries.sum()), float(self._pairs.sum())
        if entries >= work:
            self._tally.touched += self._entries * (work / entries if entries else 0.0)
        else:
            spread = self._pairs / pairs if pairs else np.full(len(self._pairs), 1 / len(self._pairs))
            self._tally.touched += self._entries + (work - entries) * spread
        self._tally.pairs += self._pairs

    def _by_slice(self, candidates: Candidates) -> Floats:
        if not candidates.size:
            return np.zeros(self._slices.count)
        times = candidates.picks.of(self._times)
        places = self._slices.places(times, self._target.times.take(candidates.rows))
        return np.bincount(places, minlength=self._slices.count).astype(np.float64)
