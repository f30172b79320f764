"""Rows in front of the join: their order of arrival, and who goes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import Floats, Ints

#: Comparisons of yields that are made at once.
_BLOCK = 1 << 22
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Figures(NamedTuple):
    """What is known of rows in the order of their arrival.

    Attributes:
        streams: The stream of each row.
        ranks: Its number among the rows of its stream, from 0.
        before: How many rows of the other stream came before it.
        found: N, its matches among the last n of these.
        stands: What these stand for, where rows were dropped.
        weights: What the row itself stands for.
    """

    streams: Ints
    ranks: Ints
    before: Ints
    found: Ints
    stands: Floats
    weights: Floats

    @staticmethod
    def none() -> Figures:
        """No rows."""
        ints, floats = np.empty(0, np.int64), np.empty(0)
        return Figures(ints, ints, ints, ints, floats, floats)

    def take(self, rows: Ints | slice) -> Figures:
        """Only some rows."""
        return Figures._make(own[rows] for own in self)

    def then(self, more: Figures) -> Figures:
        """These rows, and others behind them."""
        return Figures._make(np.concatenate(pair) for pair in zip(self, more, strict=True))


def counted(streams: Ints, let_in: Ints, start: Sequence[int]) -> tuple[Ints, Ints]:
    """Ranks of rows in the order of arrival, and how many rows of the other stream came before each.

    >>> counted(np.array([0, 1, 1, 0]), np.array([1, 1, 1, 1]), [5, 0])
    (array([5, 0, 1, 6]), array([0, 6, 6, 2]))

    Args:
        streams: The stream of each row, 0 or 1.
        let_in: 1 for rows that count, 0 for others.
        start: How many rows of each stream came before all of these.
    """
    totals = [start[s] + np.cumsum((streams == s) * let_in) for s in (0, 1)]
    own, other = np.where(streams == 0, totals, totals[::-1])
    return own - let_in, other


def pushed(streams: Ints, most: int) -> Ints:
    """By which later row each row is pushed out, of a queue in which no stream has more than `most` rows.

    The number of rows stands for none of them. So the rows that wait span the same time in both streams, and
    those of the faster one are `most`.

    >>> pushed(np.array([0, 1, 0, 0, 1]), 2)
    array([3, 5, 5, 5, 5])
    """
    size = len(streams)
    first = np.full(size, size)
    for stream in (0, 1):
        own = np.flatnonzero(streams == stream)
        before = np.cumsum(streams == stream) - (streams == stream)
        later = np.append(own, size).take(np.minimum(before + most, len(own)))
        first = np.minimum(first, later)
    return first


def standing(yields: Ints, begins: Ints, ends: Ints, judged: Ints | None = None) -> tuple[Ints, Ints]:
    """How many yields of a range are lower than that of each row that is judged, and how many equal it.

    Row n is compared with `yields[begins[n]:ends[n]]`.

    Args:
        yields: Of the rows to compare with.
        begins: Where the range of each row begins.
        ends: Where it ends.
        judged: Yields of the rows that are judged; by default those are the first ones of `yields`.
    """
    judged = yields if judged is None else judged
    lower, equal = np.zeros(len(begins), np.int64), np.zeros(len(begins), np.int64)
    widest = int((ends - begins).max(initial=1))
    step = max(1, _BLOCK // widest)
    padded = np.append(yields, -1).astype(np.int32)
    for start in range(0, len(begins), step):
        part = slice(start, start + step)
        places = begins[part, None] + np.arange(widest)
        seen = padded.take(np.where(places < ends[part, None], places, len(yields)))
        own = judged[start : start + step][: len(seen), None]
        lower[part] = ((seen >= 0) & (seen < own)).sum(1)
        equal[part] = (seen == own).sum(1)
    return lower, equal


def chances(seed: int, purpose: int, ranks: Ints) -> Floats:
    """A number from 0 to below 1 for each row, the same however the input is cut into micro-batches.

    >>> round(float(chances(1, 0, np.arange(1000)).mean()), 1)
    0.5
    """
    salt = (seed * 4 + purpose) * 0xD1B54A32D192ED03 % (1 << 64)
    mixed = (ranks.astype(np.uint64) + np.uint64(1)) * _GOLDEN + np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)) / float(1 << 53)
