"""Which part of the windows some rows probe, and so which results they find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.probing import EVERYTHING, Probing, Reach, Watch, reaches_of
from sparkshed.planner.configuration import Harvest
from sparkshed.planner.slices import Slices, Span


class Coverage:
    """Whole slices of each hop, and a part of one more slice of the first hop.

        T_l    ◀── earlier                later ──▶
               │.......│...####│#######│#######│
                           partly   whole slices

    Probes and estimates are made from the same record, so what is probed is what is counted as found.

    Attributes:
        everything: Whether all of the windows is probed.
    """

    def __init__(self, slices: Sequence[Slices], harvest: Harvest, partly: Span | None = None) -> None:
        """Cover the slices of a harvest, and a range of time besides."""
        self.everything = harvest is None
        self._partly = partly
        self._slices = slices
        self._chosen = harvest or ()
        self._masks = []
        for own, chosen in zip(slices, self._chosen, strict=False):
            mask = np.zeros(own.count)
            mask[[number - own.first for number in chosen]] = 1.0
            self._masks.append(mask)

    def probing(self, watch: Watch | None = None) -> Probing | None:
        """How rows probe that; None if there is nothing to probe."""
        if self.everything:
            return EVERYTHING if watch is None else Probing(watch=watch)
        reaches = [reaches_of(own, chosen) for own, chosen in zip(self._slices, self._chosen, strict=True)]
        if self._partly is not None:
            reaches[0] = _with_part(reaches[0], self._partly)
        return Probing(reaches, watch=watch) if all(reaches) else None

    def found(self, places: Sequence[Ints], lags: Ints) -> Floats:
        """1 for results that are found.

        Args:
            places: Of the slices of their rows, for each hop.
            lags: How much earlier than the probing row their rows of the first hop are, in microseconds.
        """
        covered: Floats = np.ones(len(lags))
        for number, (mask, own) in enumerate(zip(self._masks, places, strict=False)):
            seen = mask.take(own)
            if number == 0 and self._partly is not None:
                seen = np.maximum(seen, (lags >= self._partly.start) & (lags < self._partly.stop))
            covered *= seen
        return covered


def _with_part(reaches: list[Reach], part: Span) -> list[Reach]:
    """The reaches with one more, which grows out of the one beside it, so that no search is made twice."""
    past, future = part.stop - 1, -part.start
    for number, own in enumerate(reaches):
        if own.past is not None and own.past + 1 == part.start:
            return [*reaches[:number], Reach(past, own.future), *reaches[number + 1 :]]
        if own.future is not None and -own.future == part.stop:
            return [*reaches[:number], Reach(own.past, future), *reaches[number + 1 :]]
    return [*reaches, Reach(past, future)]
