"""Streams of several values, and pairs of streams whose popular values are the same or opposite ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from sparkshed.workloads.bursty import value_table
from sparkshed.workloads.streams import timestamps, uniform_times, zipf


def correlated_pair(
    kind: Literal["direct", "inverse"],
    rate: float,
    seconds: float,
    values: int = 100,
    skew: float = 0.75,
    seed: int = 0,
) -> tuple[pa.Table, pa.Table]:
    """Two streams with Zipf's law: columns `ts`, `k` and `id`.

    Args:
        kind: `direct` if both have the same popular values, `inverse` if one's popular ones are the other's
            rare ones.
        rate: Rows per second of each.
        seconds: Length of the streams.
        values: Number of values, from 0.
        skew: Exponent of Zipf's law.
        seed: Of both.

    >>> one, other = correlated_pair("inverse", 100, 10)
    >>> [int(np.bincount(table["k"]).argmax()) for table in (one, other)]
    [0, 99]
    """
    rng = np.random.default_rng(seed)
    shares = zipf(values, skew)
    one, other = (
        value_table(uniform_times(rng, rate, seconds), rng.choice(values, int(rate * seconds), p=own))
        for own in (shares, shares if kind == "direct" else shares[::-1])
    )
    return one, other


def attribute_table(
    rng: np.random.Generator, rate: float, seconds: float, skews: Sequence[float], values: int = 100
) -> pa.Table:
    """A stream of several values: columns `ts`, `id`, and `a1`, `a2`, …, one for each skew; 0 is uniform.

    >>> attribute_table(np.random.default_rng(0), 10, 1, (0.0, 1.5)).column_names
    ['ts', 'id', 'a1', 'a2']
    """
    times = uniform_times(rng, rate, seconds)
    columns = {"ts": timestamps(times), "id": pa.array(np.arange(len(times)))}
    for number, skew in enumerate(skews, 1):
        columns[f"a{number}"] = pa.array(rng.choice(values, len(times), p=zipf(values, skew)))
    return pa.table(columns)
