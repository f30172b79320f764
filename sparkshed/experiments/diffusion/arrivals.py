"""Streams as numbers of rows: how many come in each tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.engine.arrays import Floats


def rates_of(streams: int, rng: np.random.Generator, least: float = 5.0, most: float = 20.0) -> list[float]:
    """Rows per second of each stream, from the range of the paper.

    They are scaled to the mean of the range, since work grows with a power of the rates: other seeds would
    be about clusters with twice or half as much to do.

    >>> rates = rates_of(3, np.random.default_rng(0))
    >>> [round(rate, 1) for rate in rates], round(sum(rates), 1)
    ([18.7, 11.6, 7.2], 37.5)
    """
    rates = rng.uniform(least, most, streams)
    return [float(rate) for rate in rates * (least + most) / 2 / rates.mean()]


def poisson(rates: Sequence[float], ticks: int, seconds: float, rng: np.random.Generator) -> Floats:
    """Rows of each stream in each tick of so many seconds.

    >>> poisson([5.0, 0.0], 1000, 1.0, np.random.default_rng(0)).mean(axis=1).round().tolist()
    [5.0, 0.0]
    """
    means = np.array(rates)[:, None] * seconds
    return rng.poisson(means, (len(rates), ticks)).astype(float)


def bursty(
    rates: Sequence[float], ticks: int, seconds: float, ratio: float, period: float, rng: np.random.Generator
) -> Floats:
    """HIGH and LOW periods, each with a length that is exponential around a mean.

    The high rate is `(1 + θ)/2 · r` and the low one `(1 - θ)/2 · r`, so that the mean is r/2 for all θ, the
    bursty ratio::

        θ = 0   ────────────────        θ = 1   ────      ──────
                                                    ──────      ────

    Args:
        rates: r of each stream.
        ticks: How many.
        seconds: Of a tick.
        ratio: θ.
        period: Mean length of a period, in seconds.
        rng: Makes it all.
    """
    times = (np.arange(ticks) + 0.5) * seconds
    found = np.empty((len(rates), ticks))
    for stream, rate in enumerate(rates):
        lengths = rng.exponential(period, 2 + 4 * int(ticks * seconds / period))
        high = (np.searchsorted(np.cumsum(lengths), times) + rng.integers(2)) % 2 == 0
        share = np.where(high, 1 + ratio, 1 - ratio) / 2
        found[stream] = rng.poisson(rate * share * seconds)
    return found
