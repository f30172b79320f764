"""Ticks: short pieces of time, by which rows are routed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: A matrix of time bounds: `bounds[i][k]` is the largest `T_i - T_k`; None if there is none.
Bounds = Sequence[Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class Ticks:
    """Pieces of time of equal length, and what can meet across them.

    ::

        tick     7        8        9        10
              |--------|--------|--------|--------|
        a row of stream i at tick 9 meets rows of stream l
              |<- bounds[i][l] ->|<- bounds[l][i] ->|

    Attributes:
        length: Of a tick, in the units of the bounds.
        bounds: The closed matrix of time bounds.
    """

    length: int
    bounds: Bounds

    def __post_init__(self) -> None:
        if self.length < 1:
            msg = f"a tick has a length of 1 at least, found {self.length}"
            raise ValueError(msg)

    def of(self, time: int) -> int:
        """The tick of a time.

        >>> Ticks(10, []).of(-1)
        -1
        """
        return time // self.length

    def met(self, stream: int, tick: int, other: int) -> tuple[int | None, int | None]:
        """The first and the last tick in which rows of a stream at a tick can meet rows of another one.

        >>> Ticks(10, [[0, 15], [5, 0]]).met(0, 3, 1)
        (1, 4)
        """
        past, future = self.bounds[stream][other], self.bounds[other][stream]
        first = None if past is None else (tick * self.length - past) // self.length
        last = None if future is None else ((tick + 1) * self.length - 1 + future) // self.length
        return first, last

    def reach(self, stream: int) -> int | None:
        """Ticks after which rows of a stream can meet nothing new; None if they can for ever."""
        found = 0
        for other, row in enumerate(self.bounds):
            if other != stream:
                bound = row[stream]
                if bound is None:
                    return None
                found = max(found, -(-bound // self.length) + 1)
        return found
