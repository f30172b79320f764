"""Chooses what is dropped in front of dual windows, and what does not probe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparkshed.planner.adaptation import Adapter
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import PROBE, UPDATE, Costs, Floats, Split, split
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import EqualityKernel, JoinSpec
from sparkshed.planner.wire import tally_from_json, tally_to_json

#: A stream is never dropped altogether, or nothing more would be learned of it.
_LEAST_KEPT = 1e-3
#: Nor do all rows go without a probe, or nobody would know what one costs.
_MOST_REAR = 0.99
#: Seconds after which costs count half, and yields. Shares that follow every change of the yields would shed
#: the best rows of a good time, and keep the worst of a bad one.
_HALF, _HALF_YIELDS = 5.0, 20.0
#: How much of what was spent too much or too little is made up for in the next interval, and all that is
#: above this share of a budget: less is chance, and evens out.
_PAID_BACK, _CHANCE = 0.3, 0.5
#: How far the share of the work may move for that.
_MAKE_UP = 2.0


class DualAdapter(Adapter):
    """Spends a share of the full join's work, updates and probes, where it gives most results.

    The full join's cost of a row follows from the yields of all rows that came and from what probes cost, so
    V_j and V_w are as measured. With a promised budget, what was spent too much or too little is made up for.

    Attributes:
        best: The last split.
        of_kept: Whether windows hold the last n rows that were kept, as in the paper.
        rear_only: Whether nothing is dropped in front.
    """

    of_kept = False
    rear_only = False
    match = 2.0

    def _begin(self) -> None:
        self.best = Split(1.0, 0.0, float("inf"))
        self._owed = 0.0

    def knows(self, spec: JoinSpec) -> None:
        """Note what a match costs: a result, and with an index an entry; a scan compares all rows anyway."""
        kernel = spec.directions[0].hops[0].kernel
        self.match = 2.0 if isinstance(kernel, EqualityKernel) else 1.0

    def learn(self, interval: Tally) -> Tally:
        """Remember what an interval taught."""
        if self.learned is None:
            self.learned = interval.copy()
        else:
            factor, of_yields = (0.5 ** (self._policy.adapt / half) for half in (_HALF, _HALF_YIELDS))
            self.learned.decay(factor)
            for own in self.learned.directions:
                own.yields *= of_yields / factor
            self.learned.add(interval)
        return self.learned

    def adapt(
        self,
        interval: Tally,
        throttle: float,
        *,
        former: float | None = None,
        rows: Sequence[float] | None = None,
        share: float = 0.0,
    ) -> Configuration:
        """The configuration of the next interval; arguments as for all adapters."""
        orders, last = self.configuration.orders, self.configuration
        learned = self.learn(interval)
        counts = [own.yields for own in learned.directions if own.yields.size]
        costs = self._costs(learned, min(last.keep))
        self.is_planned = throttle >= 1 or (bool(counts) and costs is not None)
        if throttle >= 1:
            self.best, self._owed = Split(1.0, 0.0, float("inf")), 0.0
            self.configuration = Configuration(orders)
        elif counts and costs is not None:
            pooled = np.sum(counts, axis=0)
            budget = throttle if self._policy.follows else self._settled(interval, throttle, pooled, costs)
            self.configuration = self._chosen(learned, pooled, costs, throttle, budget)
        self._throttle = throttle
        return self.configuration

    def notes(self) -> dict[str, Any]:
        """What was learned, and what is owed.

        Rows wait from one micro-batch to the next. If a batch that is repeated would drop others in front, a
        row whose results it gave out before could still wait after it, and give them out again.
        """
        learned = None if self.learned is None else tally_to_json(self.learned)
        return {"learned": learned, "owed": self._owed}

    def recall(self, notes: Mapping[str, Any]) -> None:
        """Go on from notes, which are rounded."""
        self.learned = None if notes["learned"] is None else tally_from_json(notes["learned"])
        self._owed = notes["owed"]

    def _costs(self, learned: Tally, keep: float) -> Costs | None:
        """What a probe of a full window costs, from those that were made; None if there were none."""
        probes = sum(own.learned for own in learned.directions)
        if probes <= 0:
            return None
        work = sum(own.work - self.match * own.results for own in learned.directions)
        return Costs(max(0.0, work / probes) / (1.0 if self.of_kept else keep), self.match)

    def _settled(self, interval: Tally, throttle: float, pooled: Floats, costs: Costs) -> float:
        """The budget, with what was spent too much or too little in the interval made up for."""
        joined = sum(own.joined for own in interval.directions)
        probes = sum(own.learned for own in interval.directions)
        spent = sum(own.work for own in interval.directions) + UPDATE * joined + PROBE * probes
        # Rows are dropped at random: how many were let in says little of how many came. Before aux windows
        # are full, none leaves them.
        came = sum(own.rows for own in interval.directions) if joined else 0.0
        full = came * costs.full(float(pooled[1].sum() / pooled[0].sum()))
        if full <= 0:
            return throttle
        owed = self._owed + throttle * full - spent
        # A start without a plan costs a lot, and is not to starve all that follows.
        self._owed = min(max(owed, -_MAKE_UP * throttle * full), _MAKE_UP * throttle * full)
        return throttle * min(max(1 + _payment(self._owed / (throttle * full)), 1 / _MAKE_UP), _MAKE_UP)

    def _chosen(
        self, learned: Tally, pooled: Floats, costs: Costs, throttle: float, budget: float
    ) -> Configuration:
        orders = self.configuration.orders
        if budget >= 1:
            return Configuration(orders, throttle)
        used = pooled[0] > 0
        shares = pooled[0, used] / pooled[0].sum()
        self.best = split(
            pooled[1, used] / pooled[0, used],
            shares,
            costs,
            budget,
            of_kept=self.of_kept,
            rear_only=self.rear_only,
        )
        own = [each.yields[0, used] if each.yields.size else shares for each in learned.directions]
        rear = tuple(min(_MOST_REAR, _below(counts, shares, self.best.rear)) for counts in own)
        keep = (max(_LEAST_KEPT, self.best.keep),) * len(orders)
        return Configuration(orders, throttle, keep=keep, rear=rear)


def _payment(owed: float) -> float:
    """What is paid back in one interval of what is owed, both in budgets.

    >>> _payment(0.0), _payment(-1.0)
    (0.0, -0.8)
    """
    return _PAID_BACK * owed + math.copysign(max(0.0, abs(owed) - _CHANCE), owed)


def _below(own: Floats, pooled: Floats, share: float) -> float:
    """The share of a stream's rows that have the lowest yields of all, for a share of all rows.

    >>> _below(np.array([2.0, 0.0, 2.0]), np.array([0.25, 0.5, 0.25]), 0.5)
    0.5
    """
    if own.sum() <= 0:
        return share
    ends = np.concatenate([[0.0], np.cumsum(pooled)])
    return float(np.interp(share, ends, np.concatenate([[0.0], np.cumsum(own / own.sum())])))
