"""Streams of item sets, plain and weighted: rows that match if they have enough items in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sparkshed.workloads.streams import (
    Floats,
    Ints,
    WindowForm,
    join_sql,
    stream_table,
    uniform_times,
    zipf,
)

#: Weights are multiples of this, so that their products add up to the same in any order.
_GRAIN = 1 / 64


def draw_sets(
    rng: np.random.Generator, n: int, shares: Floats, mean: float = 5, deviation: float = 1
) -> tuple[Ints, Ints]:
    """Draw n sets of distinct items.

    Args:
        rng: Source of randomness.
        n: Number of sets.
        shares: Popularity of each item. Items are drawn one after the other, without putting back.
        mean: Mean size of a set.
        deviation: Standard deviation of the size; sizes are rounded, and at least 1.

    Returns:
        Where each set starts (n + 1 offsets), and the items of all sets, numbered from 0.
    """
    sizes = np.clip(np.rint(rng.normal(mean, deviation, n)), 1, len(shares)).astype(np.int64)
    # The items with the largest perturbed log-popularity are a weighted draw without replacement.
    keys = np.log(shares) + rng.gumbel(size=(n, len(shares)))
    ranked = np.argsort(-keys, axis=1)[:, : sizes.max(initial=0)]
    items = ranked[np.arange(ranked.shape[1]) < sizes[:, None]]
    return np.concatenate([[0], np.cumsum(sizes)]), items


def set_tables(
    rate: float, seconds: float, items: int = 100, skew: float = 0.0, seeds: Sequence[int] = (0, 1)
) -> tuple[pa.Table, ...]:
    """Generate streams of sets: columns `ts`, `s` (array<int>) and `id`.

    Args:
        rate: Rows per second of each stream.
        seconds: Length of the streams.
        items: Number of items.
        skew: Exponent of the Zipf law of their popularity; 0 makes all equally popular.
        seeds: Seed of each stream.
    """
    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        t = uniform_times(rng, rate, seconds)
        offsets, drawn = draw_sets(rng, len(t), zipf(items, skew))
        values = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(drawn, pa.int32()))
        tables.append(stream_table(t, "s", values))
    return tuple(tables)


def weighted_tables(
    rate: float, seconds: float, items: int = 100, skew: float = 0.0, seeds: Sequence[int] = (0, 1)
) -> tuple[pa.Table, ...]:
    """Generate streams of weighted sets: columns `ts`, `w` (map<string, double>) and `id`.

    Weights lie between 1/64 and 1. The other arguments are those of :func:`set_tables`.
    """
    names = np.array([f"item{i}" for i in range(items)])
    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        t = uniform_times(rng, rate, seconds)
        offsets, drawn = draw_sets(rng, len(t), zipf(items, skew))
        weights = rng.integers(1, round(1 / _GRAIN), len(drawn), endpoint=True) * _GRAIN
        values = pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()), pa.array(names[drawn]), pa.array(weights)
        )
        tables.append(stream_table(t, "w", values))
    return tuple(tables)


def set_sql(
    window_seconds: float = 20, least: int = 3, hint: str | None = None, form: WindowForm = "compact"
) -> str:
    """Pairs of sets with `least` or more common items, over the views `sets1` and `sets2`.

    >>> print(set_sql(hint="SHED(exact)"))
    SELECT /*+ SHED(exact) */ s1.id AS id1, s2.id AS id2
    FROM sets1 s1
    JOIN sets2 s2 ON size(array_intersect(s1.s, s2.s)) >= 3
    WHERE greatest(s1.ts, s2.ts) <= least(s1.ts + INTERVAL 20 SECONDS, s2.ts + INTERVAL 20 SECONDS)
    """
    return join_sql(
        "sets",
        2,
        lambda a, b: f"size(array_intersect({a}.s, {b}.s)) >= {least}",
        window_seconds,
        hint,
        form=form,
    )


def weighted_sql(
    window_seconds: float = 20, least: float = 1.5, hint: str | None = None, form: WindowForm = "compact"
) -> str:
    """Pairs of weighted sets whose inner product is `least` or more, over `weights1` and `weights2`.

    >>> print(weighted_sql().splitlines()[2])  # doctest: +NORMALIZE_WHITESPACE
    JOIN weights2 w2 ON aggregate(map_values(map_zip_with(w1.w, w2.w, (k, x, y) -> coalesce(x * y, 0D))),
      0D, (s, v) -> s + v) >= 1.5D
    """
    return join_sql(
        "weights",
        2,
        lambda a, b: (
            f"aggregate(map_values(map_zip_with({a}.w, {b}.w, (k, x, y) -> coalesce(x * y, 0D))), "
            f"0D, (s, v) -> s + v) >= {least:g}D"
        ),
        window_seconds,
        hint,
        form=form,
    )
