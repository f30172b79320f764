"""The results of a micro-batch, by the row that arrives last."""

from __future__ import annotations

import numpy as np

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.eviction.policy import Policy
from sparkshed.engine.eviction.slots import GONE, Slots

#: So many results of one row are looked at one by one, which is quicker than all at once.
_FEW = 6


class Meetings:
    """Results in the order in which they become due, as slots of the partners."""

    def __init__(self, partners: Ints, places: Ints, arrivals: int) -> None:
        """Take results as they were found.

        Args:
            partners: The slots of the partners, one row for each result.
            places: The place, among the arrivals, of the row that arrives last.
            arrivals: Rows that arrive.
        """
        self._partners = partners
        self._places = places
        self._ends = np.cumsum(np.bincount(places, minlength=arrivals))

    def prepare(self, slots: Slots, *, sort: bool) -> None:
        """Put results in order, where anybody wants to know them one row at a time."""
        self._slots = slots
        if sort:
            order = self._places.argsort(kind="stable")
            self._partners, self._places = self._partners.take(order, axis=0), self._places.take(order)
            self._bounds = [0, *self._ends.tolist()]

    def credit(self, place: int, policy: Policy, seq: int) -> int:
        """Give credit for the results of an arrival; returns how many are emitted."""
        first, last = self._bounds[place], self._bounds[place + 1]
        if first == last:
            return 0
        partners = self._partners[first:last]
        if last - first <= _FEW:
            return self._credit_few(partners.tolist(), policy, seq)
        there = self._slots.states.take(partners) != GONE
        whole = there.all(axis=1)
        count = int(whole.sum())
        if count:
            policy.credit(partners[whole], seq)
        return count

    def _credit_few(self, results: list[list[int]], policy: Policy, seq: int) -> int:
        state, count = self._slots.state, 0
        for partners in results:
            for partner in partners:
                if state[partner] == GONE:
                    break
            else:
                count += 1
                policy.meet(partners, seq)
        return count

    def emitted_between(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Partners and places of the results that were emitted in a stretch of arrivals."""
        start, stop = self._bounds[first], self._bounds[last]
        partners, places = self._partners[start:stop], self._places[start:stop]
        there = all_there(self._slots, partners, places)
        return partners[there], places[there]


def all_there(slots: Slots, partners: Ints, places: Ints) -> Bools:
    """Which results have all of their partners when they are due."""
    there: Bools = np.ones(len(places), np.bool_)
    for column in partners.T:
        there &= slots.lefts.take(column) >= places
    return there
