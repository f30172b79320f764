"""Streams of positions in a square: rows that match if they are close, by a formula without an index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sparkshed.workloads.streams import WindowForm, join_sql, timestamps, uniform_times


def point_tables(
    rate: float, seconds: float, side: float = 100, seeds: Sequence[int] = (0, 1)
) -> tuple[pa.Table, ...]:
    """Generate the streams: columns `ts`, `x`, `y` and `id`, positions uniform in a square.

    Args:
        rate: Rows per second of each stream.
        seconds: Length of the streams.
        side: Length of the square's sides.
        seeds: Seed of each stream.
    """
    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        t = uniform_times(rng, rate, seconds)
        x, y = rng.uniform(0, side, (2, len(t)))
        tables.append(pa.table({"ts": timestamps(t), "x": x, "y": y, "id": np.arange(len(t))}))
    return tuple(tables)


def point_sql(
    window_seconds: float = 20, distance: float = 2, hint: str | None = None, form: WindowForm = "compact"
) -> str:
    """Pairs of points within `distance`, over the views `points1` and `points2`.

    >>> print(point_sql(hint="SHED(exact)").splitlines()[2])
    JOIN points2 p2 ON (p1.x - p2.x) * (p1.x - p2.x) + (p1.y - p2.y) * (p1.y - p2.y) <= 4
    """
    return join_sql(
        "points",
        2,
        lambda a, b: (
            f"({a}.x - {b}.x) * ({a}.x - {b}.x) + ({a}.y - {b}.y) * ({a}.y - {b}.y) <= {distance**2:g}"
        ),
        window_seconds,
        hint,
        form=form,
    )
