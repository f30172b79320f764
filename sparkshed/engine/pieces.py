"""In which pieces the master's rows of a group are joined, and after which of them it adapts."""

from __future__ import annotations

from collections.abc import Iterator

#: Rows of a piece, at least, and pieces, at most.
_LEAST_ROWS = 32
_MOST = 64
#: Pieces between two adaptations.
_PORTION = 4


class Pieces:
    """Small pieces, and portions of them that are joined with one configuration.

    The first portions are small, because little is known of what their rows cost, and the last ones are,
    because nothing comes after them that could make up for what they spend::

        pieces     |-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|
        portions   |-|-|-|-|-------|-------|-|-|-|-|

    A portion that has spent all it should ends early.

    >>> pieces = Pieces(96)
    >>> [(piece, pieces.is_due(spent=False)) for piece in pieces]
    [((0, 32), True), ((32, 64), True), ((64, 96), False)]
    """

    def __init__(self, rows: int) -> None:
        """Cut so many rows."""
        count = min(_MOST, max(1, rows // _LEAST_ROWS))
        self._ends = [rows * number // count for number in range(count + 1)]
        self._done = self._left = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """First row of each piece, and the first one behind it."""
        for number in range(1, len(self._ends)):
            self._done, self._left = number, max(0, self._left - 1)
            yield self._ends[number - 1], self._ends[number]

    def is_due(self, *, spent: bool) -> bool:
        """Whether the last piece ends a portion, and others follow."""
        return (spent or self._left == 0) and self._done < len(self._ends) - 1

    def adapt(self) -> tuple[int, float]:
        """Begin a portion: its rows, and the share that they are of all rows still to come."""
        to_come = len(self._ends) - 1 - self._done
        near = min(self._done, to_come) < _PORTION
        self._left = 1 if near else min(_PORTION, to_come - _PORTION + 1)
        begin = self._ends[self._done]
        rows = self._ends[self._done + self._left] - begin
        return rows, rows / (self._ends[-1] - begin)
