"""Two streams of item sets whose most popular item drifts: how likely rows match depends on their ages.

At time T the most popular item is 1 + ⌊L · ((T - σ) mod ρ)/ρ⌋, the item after it is the second, and so on
around the circle of L items. The first stream has σ = 0. If the second one is shifted, its rows match rows of
the first that came σ earlier, or ρ - σ later::

    item   L |    ／|    ／|         popular at T: stream 1 ／, stream 2 the same line σ later
             |  ／  |  ／  |
           1 |／    |／    |
             +------------------ T
              0     ρ     2ρ
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sparkshed.workloads.sets import draw_sets
from sparkshed.workloads.streams import Floats, Ints, stream_table, zipf

#: Seconds, and rows per second of each stream, of the paper: a burst, and a slow way back.
PAPER_RATES = ((60.0, 100.0), (15.0, 500.0), (30.0, 300.0), (25.0, 100.0))


@dataclass(frozen=True, slots=True)
class Drift:
    """How popularity is spread and moves.

    Attributes:
        skew: κ, the exponent of the Zipf law of popularity.
        period: ρ, seconds in which the most popular item goes once around.
        shifts: σ of each stream, in seconds.
        items: L.
    """

    skew: float
    period: float
    shifts: tuple[float, ...] = (0.0, 0.0)
    items: int = 100

    def place(self, ranks: Ints, times: Floats, stream: int) -> Ints:
        """The items, from 1, that have the ranks, from 0, at the times.

        >>> Drift(1.0, period=40, shifts=(0, 25)).place(np.array([0, 0, 2]), np.array([0.0, 25.0, 25.0]), 1)
        array([38,  1,  3])
        """
        turned = ((times - self.shifts[stream]) % self.period) / self.period
        return 1 + (ranks + np.floor(self.items * turned).astype(np.int64)) % self.items


def paper_drift(window: float, skew: float, *, aligned: bool = False, items: int = 100) -> Drift:
    """The paper's: ρ = 2w, and the second stream shifted by 5/8 of that unless they are aligned."""
    period = 2 * window
    return Drift(skew, period, (0.0, 0.0 if aligned else 5 / 8 * period), items)


def varying_times(rng: np.random.Generator, rates: Sequence[tuple[float, float]]) -> Floats:
    """Ascending times of rows that come at so many per second for so many seconds, one after another.

    >>> len(varying_times(np.random.default_rng(0), [(2, 10), (1, 50)]))
    70
    """
    times, start = [np.empty(0)], 0.0
    for seconds, rate in rates:
        times.append(start + np.sort(rng.uniform(0, seconds, int(rate * seconds))))
        start += seconds
    return np.concatenate(times)


def drifting_sets(
    drift: Drift,
    rates: Sequence[tuple[float, float]],
    *,
    mean: float = 5,
    deviation: float = 1,
    seeds: Sequence[int] = (0, 1),
    vectors: bool = False,
) -> tuple[pa.Table, ...]:
    """Generate streams of sets: columns `ts`, `s` (array<int>) and `id`. Equal arguments give equal streams.

    Args:
        drift: How popularity moves.
        rates: Seconds and rows per second of each stream, one after another.
        mean: Mean size of a set.
        deviation: Standard deviation of the size.
        seeds: Seed of each stream.
        vectors: Have a column `v` (array<float>) instead, 1 for each item of the set and 0 for the others.
            The inner product of two of them is the number of common items.
    """
    tables = []
    for stream, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        t = varying_times(rng, rates)
        offsets, ranks = draw_sets(rng, len(t), zipf(drift.items, drift.skew), mean, deviation)
        rows = np.repeat(np.arange(len(t)), np.diff(offsets))
        items = drift.place(ranks, t[rows], stream)
        if vectors:
            matrix = np.zeros((len(t), drift.items), np.float32)
            matrix[rows, items - 1] = 1.0
            offsets = np.arange(len(t) + 1) * drift.items
            tables.append(stream_table(t, "v", _lists(offsets, pa.array(matrix.ravel()))))
        else:
            tables.append(stream_table(t, "s", _lists(offsets, pa.array(items, pa.int32()))))
    return tuple(tables)


def drifting_keys(
    drift: Drift, rates: Sequence[tuple[float, float]], seeds: Sequence[int] = (0, 1)
) -> tuple[pa.Table, ...]:
    """Generate streams of single items, for joins on equality: columns `ts`, `k` and `id`.

    The paper has 5000 of them. The arguments are those of :func:`drifting_sets`.
    """
    tables = []
    for stream, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        t = varying_times(rng, rates)
        ranks = rng.choice(drift.items, len(t), p=zipf(drift.items, drift.skew))
        tables.append(stream_table(t, "k", pa.array(drift.place(ranks, t, stream), pa.int64())))
    return tuple(tables)


def _lists(offsets: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
