"""Random numbers that can be drawn one at a time, and gone on with after a restart."""

from __future__ import annotations

import numpy as np

from sparkshed.engine.arrays import Floats

_BLOCK = 1024


class Draws:
    """A row of random numbers from 0 to 1, of which each has a number.

    However they are drawn, one by one or many at a time, number n is the same.

    >>> first, second = Draws((7,)), Draws((7,))
    >>> [first.next() for _ in range(3)] == second.take(3).tolist()
    True
    """

    def __init__(self, seed: tuple[int, ...], drawn: int = 0) -> None:
        """Go on after so many numbers."""
        self._seed = seed
        self.drawn = drawn
        self._number = -1
        self._block: list[float] = []

    def next(self) -> float:
        """One number."""
        block, place = divmod(self.drawn, _BLOCK)
        if block != self._number:
            self._number, self._block = block, self._values(block).tolist()
        self.drawn += 1
        return self._block[place]

    def take(self, count: int) -> Floats:
        """The next few numbers."""
        first = self.drawn // _BLOCK
        self.drawn += count
        blocks = [self._values(number) for number in range(first, (self.drawn - 1) // _BLOCK + 1)]
        if not blocks:
            return np.empty(0)
        start = self.drawn - count - first * _BLOCK
        taken: Floats = np.concatenate(blocks)[start : start + count]
        return taken

    def _values(self, number: int) -> Floats:
        return np.random.default_rng((*self._seed, number)).random(_BLOCK)
