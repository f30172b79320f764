"""Amounts that single rows contribute to an estimate, for its spread."""

from __future__ import annotations

import numpy as np

from sparkshed.engine.arrays import Floats, Ints


class Ledger:
    """One amount for each row of a stream, and the sum of their squares.

    An estimate that adds up amounts of rows, each of which is in the sample or not as a whole, has a
    variance in proportion to that sum. Amounts of a row add up over micro-batches before they are squared.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._amounts: Floats = np.zeros(0)
        self.squares = 0.0

    def add(self, rows: Ints, amounts: Floats) -> None:
        """Add amounts to rows; a row may come many times."""
        if not len(rows):
            return
        size = int(rows.max()) + 1
        more = np.bincount(rows, amounts, size)
        if size > len(self._amounts):
            room = np.zeros(max(size, 2 * len(self._amounts)))
            room[: len(self._amounts)] = self._amounts
            self._amounts = room
        held = self._amounts[:size]
        self.squares += float((more * (2 * held + more)).sum())
        held += more

    def renumber(self, rows: Ints) -> None:
        """Row n was row `rows[n]`; all others are gone, and their squares stay counted."""
        known = rows < len(self._amounts)
        amounts = np.zeros(len(rows))
        amounts[known] = self._amounts.take(rows[known])
        self._amounts = amounts
