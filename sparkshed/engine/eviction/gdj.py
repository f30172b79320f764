"""GreedyDual-Join as in the paper: rows earn credit with results, and start with a percentile of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.policy import Policy
from sparkshed.engine.eviction.slots import ACTIVE

#: Credits are looked at once in so many arrivals, as a share of the rows, and as a number at least.
_SHARE, _LEAST = 32, 8


class Gdj(Policy):
    """Credits by one of the paper's three rules.

    METHOD 1: one for each result. METHOD 2: the rank of the row among the others, as a share, for each
    result, and all credits are lowered by one at each step. METHOD 3: one for each result, and all credits
    are lowered so that their mean stays. Credits matter only beside other credits, and a new row starts
    with a percentile of them: what is taken from all alike changes nothing. So METHOD 3 decides what METHOD
    1 decides, and nothing need be taken at all.

    The percentile is taken from credits as they were at most a 32nd of the buffer's rows ago.
    """

    credits = True

    def __init__(self, method: int, percentile: float, groups: int, *, own: bool) -> None:
        """Start with a percentile for so many parts of the buffer, and credit for `own` results."""
        self._own = own
        self._ranked = method == 2
        self._percentiles = [percentile] * groups
        self._levels = [0.0] * groups
        self._sorted: list[Floats] = [np.zeros(1)] * groups

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """The percentile of its part of the buffer, and its own results."""
        return self._levels[group] + own if self._own else self._levels[group]

    def meet(self, partners: Sequence[int], seq: int) -> None:
        """More for the partners of a result."""
        priority = self.slots.priority
        for partner in partners:
            priority[partner] += self._rank(partner) if self._ranked else 1.0

    def _rank(self, partner: int) -> float:
        known = self._sorted[self.slots.group[partner]]
        below = int(known.searchsorted(self.slots.priority[partner], "right"))
        return (below + 1) / (len(known) + 1)

    def credit(self, results: Ints, seq: int) -> None:
        """More for each."""
        if self._ranked:
            self.meet(results.ravel().tolist(), seq)
        else:
            np.add.at(self.slots.priorities, results, 1.0)

    def interval(self, active: int) -> int:
        """A share of the rows."""
        return max(_LEAST, active // _SHARE)

    def refresh(self, seq: int, now: int) -> None:
        """Find the levels at which rows start."""
        active = np.flatnonzero(self.slots.states == ACTIVE)
        credits, groups = self.slots.priorities.take(active), self.slots.groups.take(active)
        for group, percentile in enumerate(self._percentiles):
            own = credits[groups == group]
            if not len(own):
                continue
            place = min(len(own) - 1, int(percentile * len(own)))
            self._levels[group] = float(np.partition(own, place)[place])
            if self._ranked:
                self._sorted[group] = np.sort(own)

    def notes(self, order: Ints) -> dict[str, Any]:
        """The levels."""
        return {"levels": self._levels, "sorted": self._sorted if self._ranked else None}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        self._levels = list(notes["levels"])
        self._sorted = notes["sorted"] or self._sorted
