"""Streams of values that come in bursts: what was seen lately is likely to be seen again soon."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
import pyarrow as pa

from sparkshed.workloads.streams import Floats, Ints, stream_table, zipf

#: One day in minutes: the length of the streams of :func:`renewal_tables`, whose seconds stand for minutes.
DAY = 1440.0
#: Seconds over which the rate of a market is the same.
_LULL = 5.0


def renewals(
    rng: np.random.Generator, shares: Floats, rows: int, seconds: float, shape: float = 0.75
) -> tuple[Floats, Ints]:
    """Times and values of a stream in which the times between equal values follow Pareto's law.

    Args:
        rng: Source of randomness.
        shares: How often each value comes; values are numbered from 0.
        rows: Number of rows.
        seconds: Length of the stream.
        shape: Of Pareto's law; the smaller, the more a value's rows crowd together.

    >>> t, k = renewals(np.random.default_rng(0), zipf(3), 6, 10)
    >>> len(t), bool((t[1:] >= t[:-1]).all()), sorted(k.tolist())
    (6, True, [0, 0, 0, 1, 1, 2])
    """
    times, values = [], []
    for value, count in enumerate(_counts(shares, rows).tolist()):
        ends = np.cumsum(rng.pareto(shape, count + 1))
        times.append((ends[:-1] / ends[-1] * seconds + rng.uniform(0, seconds)) % seconds)
        values.append(np.full(count, value))
    return _in_order(np.concatenate(times), np.concatenate(values))


def market(
    rng: np.random.Generator,
    seconds: float,
    rate: float = 23.0,
    symbols: int = 500,
    skew: float = 0.71,
    *,
    calm: float = 0.2,
    every: float = 150.0,
    lasts: float = 10.0,
    swing: float = 0.5,
) -> tuple[Floats, Ints]:
    """Times and symbols of trades: some at any time, most in bursts that each symbol has now and then.

    Args:
        rng: Source of randomness.
        seconds: Length of the stream.
        rate: Trades per second, on average.
        symbols: Number of symbols.
        skew: Exponent of the Zipf law of their popularity.
        calm: Share of the trades that belong to no burst.
        every: Seconds between two bursts of a symbol, on average.
        lasts: Seconds between the beginning of a burst and its trades, on average.
        swing: How much the rate of the whole market changes: the deviation of its logarithm.

    >>> t, k = market(np.random.default_rng(0), 60)
    >>> len(t), round(float(t.max())), len(set(k.tolist())) > 200
    (1380, 60, True)
    """
    rows = int(rate * seconds)
    values = np.repeat(np.arange(symbols), _counts(zipf(symbols, skew), rows))
    bursts = 1 + rng.poisson(max(0.0, seconds / every - 1), symbols)
    first = np.cumsum(bursts) - bursts
    burst = first[values] + (rng.random(rows) * bursts[values]).astype(np.int64)
    begins = rng.uniform(0, seconds, int(bursts.sum()))[burst]
    times = begins + rng.exponential(lasts, rows)
    times = np.where(rng.random(rows) < calm, rng.uniform(0, seconds, rows), times) % seconds
    # Time runs faster while the market is busy.
    edges = np.linspace(0, seconds, ceil(seconds / _LULL) + 1)
    paces = np.concatenate([[0.0], np.cumsum(rng.lognormal(0, swing, len(edges) - 1))])
    return _in_order(np.interp(times, paces * (seconds / paces[-1]), edges), values)


def renewal_tables(
    seeds: Sequence[int],
    rows: int,
    seconds: float = DAY,
    values: int = 100,
    skew: float = 0.75,
    shape: float = 0.75,
) -> tuple[pa.Table, ...]:
    """Streams of :func:`renewals`, one for each seed: columns `ts`, `k` and `id`."""
    shares = zipf(values, skew)
    return tuple(
        value_table(*renewals(np.random.default_rng(seed), shares, rows, seconds, shape)) for seed in seeds
    )


def market_tables(m: int, seconds: float, seed: int = 0, rate: float = 23.0) -> tuple[pa.Table, ...]:
    """One market, seen in m places: each trade is in one of the streams. Columns `ts`, `k` and `id`."""
    rng = np.random.default_rng(seed)
    times, symbols = market(rng, seconds, rate)
    place = rng.integers(m, size=len(times))
    return tuple(value_table(times[place == i], symbols[place == i]) for i in range(m))


def value_table(times: Floats, values: Ints) -> pa.Table:
    """A stream of whole numbers: columns `ts`, `k` and `id`."""
    return stream_table(times, "k", pa.array(values, pa.int64()))


def _counts(shares: Floats, rows: int) -> Ints:
    """Rows of each value in proportion to its share; rounded so that they add up."""
    return np.diff(np.rint(np.concatenate([[0.0], np.cumsum(shares)]) * rows)).astype(np.int64)


def _in_order(times: Floats, values: Ints) -> tuple[Floats, Ints]:
    order = np.argsort(times, kind="stable")
    return times[order], values[order]
