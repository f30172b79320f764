"""A budget that is a promise: what is spent too much now is saved later."""

from __future__ import annotations

#: How much of what was spent too little, or too much, is made up for in the next interval.
_PAID_BACK = 0.7
#: The most that is owed, as a share of a budget.
_MOST_OWED = 0.7
#: A full work that changes by more is a new load, and what was owed for the old one is forgotten.
_NEW_LOAD = 2.0
#: Where the end is known: how much is made up for at once before it, and the factors that a budget may have.
_AT_ONCE = 0.5
_LEAST, _MOST = 0.2, 3.0


class Account:
    """What is left of the budgets so far, in a run without an end.

    >>> account = Account()
    >>> account.settle(0.5, full=100.0, spent=50.0)
    >>> account.settle(0.5, full=100.0, spent=60.0)
    >>> round(account.payment(50.0), 2)
    0.86
    """

    def __init__(self) -> None:
        """Owe nothing."""
        self._left = 0.0
        self._full = 0.0
        self._payment = 1.0

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
        self._payment = 1 + _PAID_BACK * self._left / budget

    def payment(self, budget: float, share: float = 0.0) -> float:
        """The factor by which the next budget is larger or smaller for what is left.

        Args:
            budget: The next one, without it.
            share: What the next interval has of all rows that are still to come; 0 if that is not known.
        """
        return self._payment


class FinalAccount(Account):
    """What is left of the budget of a run whose end is known, and by which nothing is to be left.

    One share of the full work is promised for all of it, and nothing is forgotten.

    >>> account = FinalAccount(0.5)
    >>> account.settle(1.0, full=100.0, spent=70.0)
    >>> account.payment(40.0, share=0.1), account.payment(40.0, share=1.0)
    (0.75, 0.5)
    """

    def __init__(self, throttle: float) -> None:
        """Owe nothing of the promised share of the work."""
        super().__init__()
        self._throttle = throttle

    def settle(self, throttle: float, full: float, spent: float) -> None:
        """Compare the work of an interval with what was promised for it."""
        self._left += self._throttle * full - spent

    def payment(self, budget: float, share: float = 0.0) -> float:
        """A part of what is left is for the next interval, and all of it for the last one."""
        if budget <= 0:
            return 1.0
        return min(max(1 + max(_AT_ONCE, share) * self._left / budget, _LEAST), _MOST)
