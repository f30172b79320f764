"""Streams of vectors, such as embeddings of pictures: rows that match if their directions are close.

A vector is the centre of its cluster plus noise of one of a few lengths. With the default ones, the
similarity of two vectors of a cluster is near 0.99, 0.78 or 0.61. None is so close to 0.9 that rounding
could decide, so engines that round differently still agree on the number of results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkshed.workloads.streams import WindowForm, join_sql, stream_table, uniform_times


def draw_vectors(
    rng: np.random.Generator, n: int, centres: npt.NDArray[np.float64], noise: Sequence[float]
) -> npt.NDArray[np.float32]:
    """Draw n vectors around centres of length 1; the length of their noise is one of those given."""
    members = centres[rng.integers(0, len(centres), n)]
    dimensions = centres.shape[1]
    sizes = rng.choice(noise, (n, 1)) / np.sqrt(dimensions)
    return (members + sizes * rng.standard_normal((n, dimensions))).astype(np.float32)


def vector_tables(
    rate: float,
    seconds: float,
    dimensions: int = 128,
    clusters: int = 100,
    noise: Sequence[float] = (0.1, 0.8),
    seeds: Sequence[int] = (0, 1),
) -> tuple[pa.Table, ...]:
    """Generate the streams: columns `ts`, `v` (array<float>) and `id`.

    Args:
        rate: Rows per second of each stream.
        seconds: Length of the streams.
        dimensions: Length of the vectors.
        clusters: Number of clusters; the streams have the same ones.
        noise: Lengths of the noise, where the centre of a cluster has length 1; each row draws one.
        seeds: Seed of each stream; the first one also draws the centres.
    """
    centres = np.random.default_rng([seeds[0], dimensions]).standard_normal((clusters, dimensions))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    tables = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        t = uniform_times(rng, rate, seconds)
        drawn = draw_vectors(rng, len(t), centres, noise)
        offsets = pa.array(np.arange(len(t) + 1) * dimensions, pa.int32())
        tables.append(stream_table(t, "v", pa.ListArray.from_arrays(offsets, pa.array(drawn.ravel()))))
    return tuple(tables)


def vector_sql(
    window_seconds: float = 20, least: float = 0.9, hint: str | None = None, form: WindowForm = "compact"
) -> str:
    """Pairs of vectors with a cosine similarity of `least` or more, over `vectors1` and `vectors2`.

    >>> print(vector_sql(hint="SHED(exact)").splitlines()[2])
    JOIN vectors2 v2 ON vector_cosine_similarity(v1.v, v2.v) >= 0.9
    """
    return join_sql(
        "vectors",
        2,
        lambda a, b: f"vector_cosine_similarity({a}.v, {b}.v) >= {least:g}",
        window_seconds,
        hint,
        form=form,
    )
