"""Sampling in front of a limited buffer: some rows never enter it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Bools, Floats, Ints
from sparkshed.engine.eviction.draws import Draws

#: Parts of a basic window in which rows are counted, and parts whose probabilities are remembered.
_PARTS, _REMEMBERED = 64, 4096


class Sampler:
    """Drops rows with a given probability, or with `1 - B/(λw)`: as many stay as there is room for.

    Then none of them has to leave early, and what is joined is a sample of all rows without bias. λw, the
    rows that the whole windows would hold, is counted by small parts of basic windows: a row is dropped by
    what came in those before its own, however the input is cut. All rows of the first part enter; it is that
    small because each result of a time in which nothing is dropped counts as many of later ones.
    """

    def __init__(
        self,
        sample: float | str,
        limit: int,
        basic: int,
        retentions: Sequence[int | None],
        seed: tuple[int, ...],
    ) -> None:
        """Start with nothing counted.

        Args:
            sample: The probability, or `auto`.
            limit: Rows that the buffer has room for.
            basic: Length of a basic window.
            retentions: How long a row of each stream can match; None for ever.
            seed: Decides about single rows.
        """
        self._fixed = None if isinstance(sample, str) else sample
        self._limit = limit
        self._basic = max(1, basic // _PARTS)
        self._retentions = retentions
        self._draws = [Draws((*seed, stream)) for stream, _ in enumerate(retentions)]
        self._counts: list[dict[int, int]] = [{} for _ in retentions]
        self._first: int | None = None
        self._known: dict[int, float] = {}
        self._arriving: dict[int, Floats] = {}
        self.drop = self._fixed or 0.0

    def arriving(self, times: Mapping[int, Ints]) -> None:
        """Rows of all streams are about to come."""
        self._arriving = {}
        if self._fixed is not None:
            return
        if self._known:
            self._forget(max(self._known))
        numbers = {stream: own // self._basic for stream, own in times.items() if len(own)}
        for number in np.unique(np.concatenate([np.empty(0, np.int64), *numbers.values()])).tolist():
            self._first = number if self._first is None else min(self._first, number)
            self._known[number] = self._probability(number)
            for stream, own in numbers.items():
                counts = self._counts[stream]
                counts[number] = counts.get(number, 0) + int((own == number).sum())
        for stream, own in numbers.items():
            found, places = np.unique(own, return_inverse=True)
            self._arriving[stream] = np.array([self._known[n] for n in found.tolist()]).take(places)

    def _probability(self, number: int) -> float:
        """The chance to be dropped, of rows in a basic window."""
        if number in self._known:
            return self._known[number]
        assert self._first is not None
        expected = 0.0
        passed = number - self._first
        for retention, counts in zip(self._retentions, self._counts, strict=True):
            if retention is None:
                expected += sum(count for n, count in counts.items() if n < number)
            elif passed:
                reach = -(-retention // self._basic)
                seen = min(reach, passed)
                expected += sum(counts.get(n, 0) for n in range(number - seen, number)) * reach / seen
        self.drop = max(0.0, 1 - self._limit / expected) if expected else 0.0
        return self.drop

    def _forget(self, newest: int) -> None:
        """Windows that no row will look back to."""
        for retention, counts in zip(self._retentions, self._counts, strict=True):
            reach = _PARTS if retention is None else -(-retention // self._basic)
            old = [n for n in counts if n < newest - 2 * (reach + 1)]
            gone = sum(counts.pop(n) for n in old)
            if retention is None and gone:
                # They are there for ever, and need not be told apart.
                counts[min(old)] = gone
        for number in sorted(self._known)[:-_REMEMBERED]:
            del self._known[number]

    def admit(self, stream: int, count: int) -> Bools:
        """Which of the new rows enter."""
        drop = self._arriving.get(stream, self.drop)
        admitted: Bools = self._draws[stream].take(count) >= drop
        return admitted

    def weights(self, times: Ints) -> Floats:
        """What rows that entered stand for."""
        if self._fixed is not None:
            return np.full(len(times), 1 / max(1e-9, 1 - self._fixed))
        found, places = np.unique(times // self._basic, return_inverse=True)
        kept = np.array([1 - self._known.get(n, self.drop) for n in found.tolist()])
        weights: Floats = (1 / np.maximum(kept, 1e-9)).take(places)
        return weights

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {
            "drawn": [own.drawn for own in self._draws],
            "counts": self._counts,
            "first": self._first,
            "known": self._known,
            "drop": self.drop,
        }

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        for own, drawn in zip(self._draws, notes["drawn"], strict=True):
            own.drawn = drawn
        self._counts, self._first = notes["counts"], notes["first"]
        self._known, self.drop = notes["known"], notes["drop"]
