"""How some rows of a direction are joined: with everything in time, or with some slices of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sparkshed.engine.arrays import Bools, Ints, shift
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.windows import Windows
from sparkshed.planner.slices import Run, Slices, runs


class Reach(NamedTuple):
    """Partners that are at most `past` earlier and `future` later than the probing row; None is any time."""

    past: int | None = None
    future: int | None = None

    def within(self, times: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The part of each time range `[low, high]` that is in reach of the probing row."""
        if self.past is not None:
            low = np.maximum(low, shift(times, -self.past)[0])
        if self.future is not None:
            high = np.minimum(high, shift(times, self.future)[0])
        return low, high

    def bounded(self, past: int | None, future: int | None) -> Reach:
        """What is left of it within the bounds of the join."""
        least = [b for b in (self.past, past) if b is not None]
        most = [b for b in (self.future, future) if b is not None]
        return Reach(min(least, default=None), min(most, default=None))

    def width(self, past: int | None, future: int | None) -> int | None:
        """Length of the time range, given the bounds of the join; None if it has no end."""
        own = self.bounded(past, future)
        return None if own.past is None or own.future is None else own.past + own.future

    def meets(self, times: Ints, first: Ints, last: Ints) -> Bools:
        """Which of the spans `[first, last]` are in reach of a row with one of the times, which ascend."""
        begin, end = np.zeros(len(first), np.int64), np.full(len(first), len(times))
        if self.past is not None and self.future is not None and self.past + self.future < 0:
            # No partner is in reach, and a span must not fit in between.
            return begin > 0
        if self.future is not None:
            begin = times.searchsorted(shift(first, -self.future)[0])
        if self.past is not None:
            end = times.searchsorted(shift(last, self.past)[0], "right")
        return begin < end


class Span(NamedTuple):
    """Partners from one time to another, whatever the time of the probing row."""

    first: int
    last: int

    def within(self, times: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The part of each time range `[low, high]` that is in the span."""
        return np.maximum(low, self.first), np.minimum(high, self.last)

    def width(self, past: int | None, future: int | None) -> int | None:
        """Length of the time range, given the bounds of the join."""
        own = self.last - self.first
        return own if past is None or future is None else min(own, max(0, past + future))


class HopWatch(Protocol):
    """Sees what some partial results touch and find at one hop."""

    def begin(self, windows: Windows, low: Ints, high: Ints) -> None:
        """They probe windows, each in its time range."""

    def touched(self, candidates: Candidates) -> None:
        """Candidates in time, before they are checked."""

    def matched(self, candidates: Candidates) -> None:
        """Those that passed all checks."""

    def end(self) -> None:
        """The windows are probed."""


class Watch(Protocol):
    """Sees how rows are joined."""

    def hop(self, number: int, partials: Partials, counters: HopCounters) -> HopWatch | None:
        """Watch some partial results at hop `number`, if there is more to see than that they are there."""


class Probing:
    """What some rows probe.

    `reaches` says for each hop which parts of the time range are probed, `thins` which share of
    its window, and `watch` sees everything. With `sifts` the first hop probes its window as a whole, and
    partners that are not in the share are left out afterwards.
    """

    def __init__(
        self,
        reaches: Mapping[int, Sequence[Reach | Span]] | Sequence[Sequence[Reach | Span]] | None = None,
        thins: Sequence[float] | None = None,
        watch: Watch | None = None,
        *,
        sifts: bool = False,
    ) -> None:
        """Probe everything, unless told otherwise."""
        self._reaches = reaches
        self._watch = watch
        self._thins = thins
        self._sifts = sifts

    def thin(self, hop: int) -> float:
        """The share of its window that a hop sees."""
        return 1.0 if self._thins is None else self._thins[hop]

    def sifts(self, hop: int) -> bool:
        """Whether a hop leaves partners out only after it has found them."""
        return self._sifts and hop == 0 and self.thin(hop) < 1

    def reaches(self, hop: int) -> Sequence[Reach | Span]:
        """The parts of the time range that a hop probes."""
        return (Reach(),) if self._reaches is None else self._reaches[hop]

    def watch(self, hop: int, partials: Partials, counters: HopCounters) -> HopWatch | None:
        """What watches some partial results at a hop, if anything does."""
        return None if self._watch is None else self._watch.hop(hop, partials, counters)


EVERYTHING = Probing()


def reaches_of(slices: Slices, chosen: Sequence[int]) -> list[Reach]:
    """The reach of each run of neighbouring slices."""
    return [Reach(*slices.reach(Run(*run))) for run in runs(chosen)]
