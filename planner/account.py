"""A budget that is a promise: what is spent too much now is saved later."""

from __future__ import annotations

from dataclasses import dataclass

#: How much of what was spent too little, or too much, is made up for in the next interval.
_PAID_BACK = 0.7
#: The most that is owed, as a share of a budget.
_MOST_OWED = 0.7
#: A full work that changes by more is a new load, and what was owed for the old one is forgotten.
_NEW_LOAD = 2.0


@dataclass(slots=True)
class Account:
    """What is left of the budgets so far.

    Attributes:
        payment: The factor by which the next budget is larger or smaller for it.

    >>> account = Account()
    >>> account.settle(0.5, full=100.0, spent=50.0)
    >>> account.settle(0.5, full=100.0, spent=60.0)
    >>> round(account.payment, 2)
    0.86
    """

    payment: float = 1.0
    _left: float = 0.0
    _full: float = 0.0

    def settle(self, throttle: float, full: float, spent: float) -> None:
        """Compare the work of an interval with its budget.

        Args:
            throttle: z of the interval.
            full: Work that all of the join would have taken.
            spent: Work that was done.
        """
        budget = throttle * full
        if budget <= 0:
            return
        steady = full / _NEW_LOAD <= self._full <= full * _NEW_LOAD
        self._full = (self._full + full) / 2 if steady else full
        left = self._left + budget - spent if steady else 0.0
        self._left = min(max(left, -_MOST_OWED * budget), _MOST_OWED * budget)
        self.payment = 1 + _PAID_BACK * self._left / budget
