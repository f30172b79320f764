"""Logical basic windows: how far apart in time a probing row and its partner are, in steps of b."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

#: Slices on a side of time that has no bound; the last one takes all the rest.
MOST_SLICES = 32


class Run(NamedTuple):
    """Neighbouring slices, from `first` to `last`, both included."""

    first: int
    last: int


class Span(NamedTuple):
    """Differences T_i - T_l in microseconds, from `start` on and below `stop`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of one hop: number k holds the partners with b·k <= T_i - T_l < b·(k + 1).

        T_l    ◀── earlier                    later ──▶
               │ k = 2 │ k = 1 │ k = 0 │ k = -1 │
                                       ▲
                                      T_i, the probing row

    They are relative to the probing row, unlike the windows that rows are stored in. The outermost
    slices take what lies beyond them; the time bounds, `past` and `future`, cut that off where there are any.
    """

    basic: int
    first: int
    last: int
    past: int | None = field(default=None, repr=False)
    future: int | None = field(default=None, repr=False)

    @staticmethod
    def of(past: int | None, future: int | None, basic: int) -> Slices:
        """The slices of a partner that may be `past` earlier and `future` later; None is any time.

        >>> Slices.of(20, 0, 2)
        Slices(basic=2, first=0, last=9)
        >>> Slices.of(5, 5, 2).count
        6
        """
        last = MOST_SLICES - 1 if past is None else -(-past // basic) - 1
        first = -MOST_SLICES if future is None else -(future // basic) - (future % basic > 0)
        return Slices(basic, first, max(first, last), past, future)

    @property
    def count(self) -> int:
        """How many slices there are."""
        return self.last - self.first + 1

    def places(self, origin: Ints, target: Ints) -> Ints:
        """The place, from 0, of the slice that holds each partner."""
        numbers = (origin - target) // self.basic
        numbers -= self.first
        return np.clip(numbers, 0, self.count - 1, out=numbers)

    def span(self, number: int) -> Span | None:
        """The differences T_i - T_l that a slice holds; None if it has no end.

        >>> Slices.of(5, 0, 2).span(1), Slices.of(5, 0, 2).span(2), Slices.of(None, 0, 2).span(31)
        (Span(start=2, stop=4), Span(start=4, stop=6), None)
        """
        start, stop = self.basic * number, self.basic * (number + 1)
        if number == self.last:
            stop = 0 if self.past is None else self.past + 1
        if number == self.first:
            start = 0 if self.future is None else -self.future
        is_open = (number == self.last and self.past is None) or (
            number == self.first and self.future is None
        )
        return None if is_open else Span(start, stop)

    def reach(self, run: Run) -> tuple[int | None, int | None]:
        """How much earlier and later than the probing row the partners of a run may be; None is any time.

        >>> Slices.of(20, 0, 2).reach(Run(3, 4))
        (9, -6)
        """
        past = None if run.last >= self.last else self.basic * (run.last + 1) - 1
        future = None if run.first <= self.first else -self.basic * run.first
        return past, future


def runs(numbers: Iterable[int]) -> tuple[Run, ...]:
    """Slices, in ascending order, as few runs of neighbours.

    >>> runs([0, 1, 2, 5])
    (Run(first=0, last=2), Run(first=5, last=5))
    """
    found: list[Run] = []
    for number in numbers:
        if found and found[-1].last == number - 1:
            found[-1] = Run(found[-1].first, number)
        else:
            found.append(Run(number, number))
    return tuple(found)
