"""Telling a time correlation from luck.

Counts by slice are noisy, and a chooser that takes the best slices takes the luckiest ones. Where a sample
that is large enough shows no time correlation, there is none to be used.
"""

from __future__ import annotations

import numpy as np

from sparkshed.planner.harvest.tally import Floats

#: Ranges of time that are compared; slices are put together until there are so many.
_RANGES = 8
#: Independent observations that each of them needs on average.
_OBSERVED = 10.0
#: Standard deviations of chi-square beyond its mean that are no accident.
_NO_ACCIDENT = 3.0


def even(counts: Floats, base: Floats, size: float) -> bool:
    """Whether it is clear enough that counts do not depend on the slice.

    Args:
        counts: What was found in each slice.
        base: What may be expected there if time does not matter, to any scale.
        size: How many independent observations the counts are worth.

    >>> even(np.array([26.0, 25.0, 24.0, 25.0]), np.ones(4), size=100)
    True
    >>> even(np.array([10.0, 70.0, 10.0, 10.0]), np.ones(4), size=100)
    False
    >>> even(np.array([3.0, 2.0, 1.0, 0.0]), np.ones(4), size=6)
    False
    """
    used = base > 0
    found, expected = counts[used], base[used]
    if found.sum() <= 0 or len(found) < 2:
        return False
    # Ranges that are about as likely as each other.
    places = (np.cumsum(expected) - expected / 2) / expected.sum() * min(_RANGES, len(found))
    ranges = places.astype(np.int64)
    p = np.bincount(ranges, found) / found.sum()
    q = np.bincount(ranges, expected) / expected.sum()
    p, q = p[q > 0], q[q > 0]
    freedom = len(q) - 1
    if freedom < 1 or size < _OBSERVED * len(q):
        return False
    square = size * float(((p - q) ** 2 / q).sum())
    return bool(square <= freedom + _NO_ACCIDENT * np.sqrt(2 * freedom))
