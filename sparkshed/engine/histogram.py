"""How often values came in the last rows of a stream, as of any of its latest rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparkshed.engine.arrays import Floats, Ints, Vector

#: Runs are merged when the earlier one is no more than so many times as long.
_GROWTH = 2
#: Weights are whole multiples of this part, so that their sums do not depend on how rows are grouped.
_PARTS = 1 << 20


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows by key and rank.

    Attributes:
        known: The keys that there are, ascending.
        places: For each row its key, as a place in `known`, and its rank, as one number, ascending.
        first: The lowest rank.
        span: One more than the ranks there may be between the lowest and the highest one.
        sums: The weights of all rows before each, and of all, in parts.
    """

    known: Ints
    places: Ints
    first: int
    span: int
    sums: Ints

    @staticmethod
    def of(keys: Ints, ranks: Ints, weights: Ints) -> _Run:
        """Sort rows, of which there is one at least."""
        known, codes = np.unique(keys, return_inverse=True)
        first = int(ranks.min())
        span = int(ranks.max()) - first + 2
        places = codes * span + (ranks - first)
        order = places.argsort(kind="stable")
        return _Run(known, places.take(order), first, span, np.append(0, np.cumsum(weights.take(order))))

    @property
    def last(self) -> int:
        """The highest rank."""
        return self.first + self.span - 2

    def rows(self) -> tuple[Ints, Ints, Ints]:
        """Keys, ranks and weights again."""
        codes, ranks = np.divmod(self.places, self.span)
        return self.known.take(codes), ranks + self.first, np.diff(self.sums)

    def count(self, keys: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Rows with each key and with ranks from `low` to below `high`, and their weights."""
        codes = np.minimum(self.known.searchsorted(keys), len(self.known) - 1)
        begins, ends = (
            self.places.searchsorted(codes * self.span + np.clip(rank - self.first, 0, self.span - 1))
            for rank in (low, high)
        )
        there = self.known.take(codes) == keys
        return (ends - begins) * there, (self.sums.take(ends) - self.sums.take(begins)) * there


class Histogram:
    """The values of a stream's last rows, kept up to date as rows come.

    Rows are in a few sorted runs, each more than twice as long as the next, so adding some does not sort all
    that are there. All rows that may still count can be asked about at once: how often did a value come among
    the n rows before each of them?

        runs     │ older: 8 000 rows │ 3 000 │ 900 │ newest │
        asked    key 7, ranks 5 200 to 9 200   ▶  a search in each
    """

    def __init__(self) -> None:
        """Start without rows."""
        self._runs: list[_Run] = []
        self._least = 0

    def add(self, keys: Vector, ranks: Ints, weights: Floats) -> None:
        """More rows; those whose key is NULL equal nothing, and are left out."""
        values = keys.values
        if keys.valid is not None:
            values, ranks, weights = values[keys.valid], ranks[keys.valid], weights[keys.valid]
        if not len(ranks):
            return
        self._runs.append(_Run.of(values, ranks, np.rint(weights * _PARTS).astype(np.int64)))
        while len(self._runs) > 1 and len(self._runs[-2].places) <= _GROWTH * len(self._runs[-1].places):
            self._merge()

    def _merge(self) -> None:
        """Make one of the two newest runs, without rows that no longer count."""
        columns = [
            np.concatenate(pair) for pair in zip(*(run.rows() for run in self._runs[-2:]), strict=True)
        ]
        kept = columns[1] >= self._least
        del self._runs[-2:]
        if kept.any():
            self._runs.append(_Run.of(*(column[kept] for column in columns)))

    def forget(self, least: int) -> None:
        """Nobody will ask about lower ranks."""
        self._least = least
        self._runs = [run for run in self._runs if run.last >= least]

    def count(self, keys: Vector, low: Ints, high: Ints) -> tuple[Ints, Floats]:
        """For each key, how many rows with ranks from `low` to below `high` have it, and their weights.

        >>> histogram = Histogram()
        >>> histogram.add(Vector(np.array([7, 5, 7]), None), np.array([0, 1, 2]), np.array([1.0, 1.0, 4.0]))
        >>> histogram.count(Vector(np.array([7, 7]), None), np.array([0, 1]), np.array([3, 3]))
        (array([2, 1]), array([5., 4.]))
        """
        found, parts = np.zeros((2, len(keys.values)), np.int64)
        for run in self._runs:
            own, weights = run.count(keys.values, low, high)
            found += own
            parts += weights
        stands: Floats = parts / _PARTS
        if keys.valid is not None:
            found, stands = found * keys.valid, stands * keys.valid
        return found, stands
