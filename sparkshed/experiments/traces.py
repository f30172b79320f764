"""Two streams as arrays: the yields of their rows, and the most that a choice of them can give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Floats, Ints, Vector
from sparkshed.engine.histogram import Histogram
from sparkshed.engine.waiting import chances, counted
from sparkshed.planner.dual import Costs

#: Rows of both streams that are kept between two adaptations.
BATCH = 200


@dataclass(frozen=True)
class Trace:
    """Two streams in the order of arrival.

    Attributes:
        streams: The stream of each row.
        keys: Its value.
        rows: W, the rows of each window.
    """

    streams: Ints
    keys: Ints
    rows: int

    @staticmethod
    def of(tables: Sequence[pa.Table], rows: int) -> Trace:
        """The rows of two tables in the order of their times."""
        times = [table.column("ts").cast(pa.int64()).to_numpy() for table in tables]
        keys = np.concatenate([table.column("k").to_numpy() for table in tables])
        order = np.concatenate(times).argsort(kind="stable")
        return Trace(np.repeat([0, 1], [len(own) for own in times])[order], keys[order], rows)

    @property
    def costs(self) -> Costs:
        """Every probe compares with the whole window, as in the paper, and with rows of its own batch."""
        return Costs(self.rows + BATCH / 4, 1.0)

    @cached_property
    def _full_yields(self) -> Ints:
        """The matches of each row if nothing is shed, from full windows on."""
        return self.yields(np.ones(len(self.streams), bool))[2 * self.rows :]

    @property
    def shares(self) -> Floats:
        """P_i, counted: values of recorded streams come in runs, so frequencies alone do not tell."""
        found = self._full_yields
        return np.bincount(found, minlength=self.rows + 1) / len(found)

    @property
    def full(self) -> float:
        """F, work units of a row of the full join."""
        return self.costs.full(float(self._full_yields.mean()))

    def kept(self, share: float, seed: int) -> Bools:
        """A random share of the rows."""
        return chances(seed, 0, np.arange(len(self.streams))) < share

    def yields(self, kept: Bools) -> Ints:
        """The matches of each row among the last W kept ones of the other stream; 0 for rows that are not."""
        return self._counted(kept, self.rows)

    def frequencies(self) -> Ints:
        """How often each row's value came before in the other stream."""
        return self._counted(np.ones(len(self.streams), bool), len(self.streams))

    def _counted(self, kept: Bools, rows: int) -> Ints:
        """How often each kept row's value came in so many of the kept rows of the other stream before it."""
        ranks, before = counted(self.streams, kept.astype(np.int64), (0, 0))
        found = np.zeros(len(kept), np.int64)
        for s in (0, 1):
            own, other = kept & (self.streams == s), kept & (self.streams == 1 - s)
            histogram, latest = Histogram(), before[own]
            histogram.add(Vector(self.keys[other], None), ranks[other], np.ones(int(other.sum())))
            found[own], _ = histogram.count(Vector(self.keys[own], None), latest - rows, latest)
        return found


def opt(found: Ints, kept: Bools, costs: Costs, limit: float) -> float:
    """Results of the rows with the most results for their work, as many as there is work for.

    The last one counts in part, so no choice of whole rows has more.

    Args:
        found: The yield of each row.
        kept: Rows that enter the windows.
        costs: Of rows and probes.
        limit: Work units for all of them.
    """
    left = limit - costs.update * float(kept.sum())
    units = costs.probe + costs.scan + costs.match * found[kept]
    order = np.argsort(-found[kept] / units, kind="stable")
    spent = np.cumsum(units[order])
    gained = np.cumsum(found[kept][order]).astype(np.float64)
    if left <= 0 or not len(spent):
        return 0.0
    return float(np.interp(left, np.append(0.0, spent), np.append(0.0, gained)))
