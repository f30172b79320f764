"""Scores p_ij^k of slices, from what window shredding saw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pairwise_scores(
    counts: Sequence[float] | Floats, prior: float = 1.0, blur: float = 0.0
) -> tuple[float, ...]:
    """Scores from the histogram of one pair of streams.

    Args:
        counts: Results seen per slice, old ones decayed.
        prior: Results that are pretended to have been seen, spread evenly. Keeps a slice without any luck
            so far from being written off, and gives equal scores when nothing was seen.
        blur: Share of each count that is lent to the two slices beside it, half to each. Smooths
            histograms with few counts.

    Returns:
        One score per slice, with the sum 1.

    >>> pairwise_scores([0, 6, 0], prior=3)
    (0.1111111111111111, 0.7777777777777778, 0.1111111111111111)
    >>> pairwise_scores([0, 0])
    (0.5, 0.5)
    """
    seen = np.asarray(counts, dtype=np.float64)
    if seen.ndim != 1 or not len(seen) or not np.isfinite(seen).all() or seen.min() < 0:
        message = f"counts must be a list of finite numbers, none negative, found {counts!r}."
        raise ValueError(message)
    if blur > 0:
        # At an end, the half that has no neighbour stays where it is.
        padded = np.pad(seen, 1, mode="edge")
        seen = (1 - blur) * seen + blur / 2 * (padded[:-2] + padded[2:])
    seen = seen + prior / len(seen)
    total = seen.sum()
    if total == 0:
        return (1.0 / len(seen),) * len(seen)
    return tuple((seen / total).tolist())


def per_stream_scores(
    histograms: Sequence[Sequence[float] | Floats], origin: int, target: int, first: int, n: int
) -> tuple[float, ...]:
    """Scores from one histogram per stream, as in the paper.

    Histogram l counts T_l − T_0 of results in units of the basic window b, bucket v covering
    [v − N, v − N + 1) for v = 0 .. 2N − 1:

        v          0     1    ...   N−1     N     ...   2N−1
        lag   −N     −N+1         −1     0     1      N−1    N

    Stream 0 is the reference. Its lag is 0, a point and not a bucket, so its own histogram is not read. For
    two other streams the lags are taken as independent and as even within a bucket: two lags from the buckets
    u and v differ by less than u − v as often as by more.

    Args:
        histograms: Counts of each stream.
        origin: The probing stream i.
        target: The probed stream l.
        first: Signed number of the first slice; number k covers b·k ≤ T_i − T_l < b·(k+1).
        n: How many slices.

    Returns:
        One score per slice: the share of results in it. Zeros when nothing was seen.

    >>> per_stream_scores([[], [0, 3, 1, 0]], origin=1, target=0, first=-1, n=2)
    (0.75, 0.25)
    >>> per_stream_scores([[], [0, 3, 1, 0]], origin=0, target=1, first=-1, n=2)
    (0.25, 0.75)
    """
    if origin == target:
        message = f"A stream is not joined with itself: origin and target are both {origin}."
        raise ValueError(message)
    slices = np.arange(first, first + n)
    if origin == 0:
        # T_0 − T_l in [k, k+1) is T_l − T_0 in (−(k+1), −k].
        return tuple(_at(_lags(histograms, target), -slices - 1).tolist())
    if target == 0:
        return tuple(_at(_lags(histograms, origin), slices).tolist())
    # apart[d] = probability that the buckets of the two streams are d apart.
    own, other = _lags(histograms, origin), _lags(histograms, target)
    apart = np.correlate(own, other, mode="full")
    zero = len(other) - 1 + (len(own) - len(other)) // 2
    return tuple((_at(apart, slices, zero) / 2 + _at(apart, slices + 1, zero) / 2).tolist())


def _lags(histograms: Sequence[Sequence[float] | Floats], stream: int) -> Floats:
    """A stream's histogram with the sum 1, or all zeros."""
    counts = np.asarray(histograms[stream], dtype=np.float64)
    if counts.ndim != 1 or len(counts) == 0 or len(counts) % 2:
        message = f"The histogram of stream {stream} needs an even number of buckets, found {counts.shape}."
        raise ValueError(message)
    total = counts.sum()
    return counts / total if total > 0 else counts


def _at(values: Floats, numbers: npt.NDArray[np.int_], zero: int | None = None) -> Floats:
    """Values by signed number, 0 outside; number 0 is in the middle unless told."""
    positions = numbers + (len(values) // 2 if zero is None else zero)
    inside = (positions >= 0) & (positions < len(values))
    return np.where(inside, values[np.clip(positions, 0, len(values) - 1)], 0.0)
