"""Age curves: what rows yield by their age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.slots import Slots

#: Points of the curves of :class:`Ages`.
_POINTS = 16


class Curves:
    """One curve for each stream, over the time that its rows can match; none for rows that do so for ever.

    Attributes:
        steps: Microseconds from one point to the next; 0 without a curve.
    """

    def __init__(self, retentions: Sequence[int | None], points: int) -> None:
        """Start with flat curves of so many points."""
        self.points = points
        self.steps = np.array([0 if own is None else max(1, own // points) for own in retentions], np.int64)
        self.results: Floats = np.zeros((len(retentions), points))
        self.lived: Floats = np.zeros((len(retentions), points))
        self._looked: int | None = None

    def places(self, streams: Ints, ages: Ints) -> Ints:
        """The points that ages belong to."""
        return np.clip(ages // np.maximum(self.steps.take(streams), 1), 0, self.points - 1)

    def yielded(self, streams: Ints, ages: Ints, amounts: Floats) -> None:
        """Rows of some age had results."""
        own = self.steps.take(streams) > 0
        streams, ages = streams[own], ages[own]
        np.add.at(self.results, (streams, self.places(streams, ages)), amounts[own])

    def look(self, streams: Ints, times: Ints, now: int, amounts: Floats | float = 1.0) -> None:
        """Count how long the rows that are there lived at each age, since the last look."""
        passed = 0 if self._looked is None else now - self._looked
        self._looked = now
        own = self.steps.take(streams) > 0
        streams, ages = streams[own], now - times[own]
        lived = passed * (np.broadcast_to(amounts, len(own))[own] / self.steps.take(streams))
        np.add.at(self.lived, (streams, self.places(streams, ages)), lived)

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {"results": self.results, "lived": self.lived, "looked": self._looked}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.results, self.lived = notes["results"].copy(), notes["lived"].copy()
        self._looked = notes["looked"]


def densities(rates: Floats) -> Floats:
    """The most that rows yield per step from each point on, if they stay for as long as that is worth it.

    >>> densities(np.array([[0.0, 6.0, 1.0, 0.0]])).tolist()
    [[3.0, 6.0, 1.0, 0.0]]
    """
    streams, points = rates.shape
    sums = np.concatenate([np.zeros((streams, 1)), np.cumsum(rates, axis=1)], axis=1)
    best = np.empty_like(rates)
    for first in range(points):
        gained = sums[:, first + 1 :] - sums[:, first : first + 1]
        best[:, first] = (gained / np.arange(1, points - first + 1)).max(axis=1)
    return best


class Ages:
    """How much more rows yield at some ages than at others, and what is ahead of rows of some age.

    Attributes:
        fresh: What is ahead of a new row of each stream, over the mean.
    """

    def __init__(self, retentions: Sequence[int | None], assumed: float) -> None:
        """Start with rows that yield the same at any age, as if rows had lived for so long at each."""
        self._assumed = assumed
        self._curves = Curves(retentions, _POINTS)
        self._draw(np.ones((len(retentions), _POINTS)))

    def _draw(self, rates: Floats) -> None:
        self._rates = rates
        self._ahead = densities(rates)
        self.fresh: Floats = self._ahead[:, 0]

    def yielded(self, slots: Slots, rows: Ints, now: Ints, amounts: Floats | None = None) -> None:
        """Rows in some slots had results, one each if no amounts are given."""
        amounts = np.ones(len(rows)) if amounts is None else amounts
        self._curves.yielded(slots.streams.take(rows), now - slots.times.take(rows), amounts)

    def look(self, slots: Slots, present: Ints, now: int, amounts: Floats | float = 1.0) -> None:
        """Count how long rows lived at each age, by what they promised, and draw the curves anew."""
        curves = self._curves
        curves.look(slots.streams.take(present), slots.times.take(present), now, amounts)
        results, lived = curves.results.sum(), curves.lived.sum()
        if results and lived:
            rates = (curves.results * (lived / results) + self._assumed) / (curves.lived + self._assumed)
            rates[curves.steps == 0] = 1.0
            self._draw(rates)

    def worth(self, slots: Slots, rows: Ints, now: int) -> Floats:
        """What is ahead of rows."""
        found: Floats = self._ahead[self._points(slots, rows, now)]
        return found

    def rates(self, slots: Slots, rows: Ints, now: int) -> Floats:
        """What rows yield at their present age."""
        found: Floats = self._rates[self._points(slots, rows, now)]
        return found

    def _points(self, slots: Slots, rows: Ints, now: int) -> tuple[Ints, Ints]:
        streams = slots.streams.take(rows)
        return streams, self._curves.places(streams, now - slots.times.take(rows))

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {"curves": self._curves.notes(), "rates": self._rates}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self._curves.recall(notes["curves"])
        self._draw(notes["rates"])
