"""Learning from rows that are joined in full: what each hop touches and finds, slice by slice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.engine.arrays import Floats, Ints, shift
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.windows import Windows
from sparkshed.planner.harvest.tally import DirectionTally, HopTally
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
        thins: Sequence[float],
        histograms: Sequence[Floats] | None = None,
    ) -> None:
        """Watch rows that see a share `thins[j]` of the window of hop j.

        `histograms`, one per stream, get the lags of results against the first stream.
        """
        self._origin = origin
        self._order = order
        self._slices = slices
        self._stores = stores
        self._tally = tally
        self._thins = thins
        self._histograms = histograms

    def hop(self, number: int, partials: Partials, counters: HopCounters) -> _HopWatch:
        """Watch some partial results at hop `number`."""
        joined = frozenset([self._origin, *self._order[:number]])
        target, slices = self._order[number], self._slices[number]
        tally = self._tally.hop((joined, target), slices.count)
        weights = weights_of(self._stores, partials, sorted(joined))
        tally.probes += float(weights.sum()) * self._thins[number]
        times = partials.times(self._origin)
        return _HopWatch(tally, slices, times, weights, self._stores[target], counters, self._thins[number])

    def results(self, results: Partials | Candidates, rows: Sequence[Ints], weights: Floats) -> list[Ints]:
        """Count results by slice for each stream of the order; returns the places of their slices.

        Args:
            results: Some results.
            rows: Their rows of each stream of the order.
            weights: How many results each of them stands for.
        """
        times = self._stores[self._origin].times.take(results.rows_of(self._origin))
        places = []
        for target, slices, own in zip(self._order, self._slices, rows, strict=True):
            found = slices.places(times, self._stores[target].times.take(own))
            self._tally.lag(target, slices.count)[:] += np.bincount(found, weights, slices.count)
            places.append(found)
        self._tally.results += float(weights.sum())
        if self._histograms is not None:
            self._add_lags(results, self._histograms, weights)
        return places

    def _add_lags(
        self, results: Partials | Candidates, histograms: Sequence[Floats], weights: Floats
    ) -> None:
        """Count T_l - T_1 of results, in basic windows, bucket by bucket."""
        basic = self._slices[0].basic
        first = self._stores[0].times.take(results.rows_of(0))
        for stream, counts in enumerate(histograms[1:], 1):
            lags = (self._stores[stream].times.take(results.rows_of(stream)) - first) // basic
            middle = len(counts) // 2
            counts += np.bincount(np.clip(lags + middle, 0, len(counts) - 1), weights, len(counts))


class HarvestWatch:
    """Counts what the first hop of rows that harvest finds: there are more of them than shredded rows."""

    def __init__(self, counts: Floats) -> None:
        """Add to `counts`, rows and partial results."""
        self._counts = counts

    def hop(self, number: int, partials: Partials, counters: HopCounters) -> None:
        """Count those that enter one of the first two hops."""
        if number < len(self._counts):
            self._counts[number] += partials.size


def weights_of(stores: Sequence[RowStore], joined: Partials | Candidates, streams: Sequence[int]) -> Floats:
    """How many combinations each combination of rows stands for: the product of what its rows do."""
    product: Floats = np.ones(joined.size)
    for stream in streams:
        weights = stores[stream].weights
        if weights is not None:
            product *= weights.take(joined.rows_of(stream))
    return product


def _positions(times: Ints, origin: Ints, low: Ints, high: Ints, slices: Slices) -> Ints:
    """Where the slices of each time range `[low, high]` begin among ascending times, latest slice first."""
    floor = shift(low, -1)[0]
    # The edges between slices, from the latest to the earliest, cut to the time range.
    edges = origin[None, :] - slices.basic * np.arange(slices.first, slices.last + 2)[:, None]
    edges[0], edges[-1] = high, floor
    np.clip(edges, floor, np.maximum(high, floor), out=edges)
    return times.searchsorted(edges, "right")


class _HopWatch:
    """Some partial results at one hop."""

    def __init__(
        self,
        tally: HopTally,
        slices: Slices,
        times: Ints,
        weights: Floats,
        target: RowStore,
        counters: HopCounters,
        thin: float,
    ) -> None:
        self._tally = tally
        self._slices = slices
        self._times = times
        self._weights = weights
        self._target = target
        self._counters = counters
        self._thin = thin

    def begin(self, windows: Windows, low: Ints, high: Ints) -> None:
        """They probe windows, each in its time range."""
        self._before = (self._counters.comparisons, self._counters.searches)
        self._entries = np.zeros(self._slices.count)
        self._seen = 0
        # Searches are made for each probe, which counts for less; and they take a logarithm of the rows.
        whole = round(windows.size / self._thin).bit_length()
        self._searching = self._thin * whole / max(1, windows.size.bit_length())
        step = -(-len(low) // _COUNTED)
        places = _positions(windows.times, self._times[::step], low[::step], high[::step], self._slices)
        self._rows = float((places[0] - places[-1]).sum()) * step
        if self._target.weights is not None:
            # What the rows up to each place stand for.
            sums = np.concatenate([[0.0], np.cumsum(self._target.weights.take(windows.rows))])
            found = sums.take(places)
        else:
            found = places.astype(np.float64)
        self._pairs = (found[:-1] - found[1:]) @ self._weights[::step] * step

    def touched(self, candidates: Candidates) -> None:
        """Candidates in time, before they are checked."""
        self._seen += candidates.size
        self._entries += self._by_slice(candidates)

    def matched(self, candidates: Candidates) -> None:
        """Those that passed all checks."""
        self._tally.partials += self._by_slice(candidates)

    def end(self) -> None:
        """Spread the work over the slices: one unit where a candidate was, the rest by rows in time.

        Where rows stand for several, so does the work on them.
        """
        compared, searched = self._before
        rest = self._counters.comparisons - compared - self._seen
        if rest >= 0:
            self._tally.touched += self._entries
            if self._rows:
                self._tally.touched += self._pairs * (rest / self._rows)
        elif self._seen:
            self._tally.touched += self._entries * (1 + rest / self._seen)
        self._tally.searches += (
            (self._counters.searches - searched) * self._searching * float(self._weights.mean())
        )
        self._tally.pairs += self._pairs

    def _by_slice(self, candidates: Candidates) -> Floats:
        if not candidates.size:
            return np.zeros(self._slices.count)
        times = candidates.picks.of(self._times)
        places = self._slices.places(times, self._target.times.take(candidates.rows))
        weights = candidates.picks.of(self._weights)
        if self._target.weights is not None:
            weights = weights * self._target.weights.take(candidates.rows)
        counts: Floats = np.bincount(places, weights, self._slices.count).astype(np.float64)
        return counts
