"""Keyed streams: rows that match if their keys are equal, and some keys are far more frequent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sparkshed.workloads.streams import WindowForm, join_sql, stream_table, uniform_times, zipf


def keyed_tables(
    rate: float, seconds: float, keys: int = 1000, skew: float = 1.0, seeds: Sequence[int] = (0, 1, 2)
) -> tuple[pa.Table, ...]:
    """Generate the streams: columns `ts`, `k` and `id`.

    Args:
        rate: Rows per second of each stream.
        seconds: Length of the streams.
        keys: Number of keys, from 1.
        skew: Exponent of the Zipf law of their frequencies; key 1 is the most frequent in all streams.
        seeds: Seed of each stream.
    """
    shares = zipf(keys, skew)
    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        t = uniform_times(rng, rate, seconds)
        k = rng.choice(np.arange(1, keys + 1), len(t), p=shares)
        tables.append(stream_table(t, "k", pa.array(k, pa.int64())))
    return tuple(tables)


def keyed_sql(
    m: int = 3, window_seconds: float = 5, hint: str | None = None, form: WindowForm = "compact"
) -> str:
    """The m-way join on equal keys over the views `keyed1` to `keyed<m>`.

    >>> print(keyed_sql(2, hint="SHED(exact)"))
    SELECT /*+ SHED(exact) */ k1.id AS id1, k2.id AS id2
    FROM keyed1 k1
    JOIN keyed2 k2 ON k1.k = k2.k
    WHERE greatest(k1.ts, k2.ts) <= least(k1.ts + INTERVAL 5 SECONDS, k2.ts + INTERVAL 5 SECONDS)
    """
    return join_sql(
        "keyed", m, lambda a, b: f"{a}.k = {b}.k", window_seconds, hint, every_pair=False, form=form
    )
