"""How far the values of an output are from those of the exact one."""

from __future__ import annotations

import numpy as np

from sparkshed.workloads.streams import Floats, Ints


def sse(found: Ints, exact: Ints) -> float:
    """The sum of squared differences of two histograms, each divided by its sum.

    >>> sse(np.array([1, 1]), np.array([3, 1]))
    0.125
    """
    p, q = _shares(exact), _shares(found)
    return float(np.sum((p - q) ** 2))


def kl(found: Ints, exact: Ints) -> float:
    """The Kullback-Leibler distance of the output's values from the exact ones, in nats.

    Half a result is added to every value that the exact output has, so that missing ones have a finite
    distance.

    >>> round(kl(np.array([30, 10]), np.array([3, 1])), 4)
    0.0001
    >>> round(kl(np.array([10, 0]), np.array([3, 1])), 4)
    0.2453
    """
    there = exact > 0
    p, q = _shares(exact[there]), _shares(found[there] + 0.5)
    return float(np.sum(p * np.log(p / q)))


def _shares(counts: Floats | Ints) -> Floats:
    total = counts.sum()
    if not total:
        msg = "an output without results has no distribution"
        raise ValueError(msg)
    return counts / total
