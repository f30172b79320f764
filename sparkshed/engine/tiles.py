"""Probing by blocks: conditions that no index serves are decided for whole rectangles of pairs.

A rectangle has partial results down and rows of one basic window across. It is small enough to stay
in the processor's cache while every operation of the condition passes over it, and no column is
copied per pair::

                        rows of a basic window, in time order
                     ┌──────────────┬──────────────┬───────────┐
    partial results  │    tile      │    tile      │           │
                     ├──────────────┼──────────────┤           │
                     │              │  start ▏▒▒▒▒▒│▒▒▒▏ stop  │   time range of one partial result
                     └──────────────┴──────────────┴───────────┘
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import Bools, Ints, Picks, is_sorted
from sparkshed.engine.finding import Pairs, window_range
from sparkshed.engine.ranges import Overlaps
from sparkshed.engine.windows import BasicWindow, Windows


class Tile(NamedTuple):
    """Partial results `picks` against the rows `[begin, end)` of a window.

    `start` and `stop` bound each partial result's time range within the tile; None if all of it is inside.
    """

    window: BasicWindow
    picks: Ints
    begin: int
    end: int
    start: Ints | None
    stop: Ints | None

    def pairs(self, chosen: Ints, settled: bool = False) -> Pairs:
        """The candidates at the given places of the tile, counted row by row."""
        down, across = np.divmod(chosen, self.end - self.begin)
        rows = self.window.rows[self.begin : self.end].take(across)
        return Pairs(Picks(self.picks.take(down)), rows, edge=False, settled=settled)

    def outside(self) -> Bools | None:
        """Where a pair is outside the time range; None if nowhere."""
        if self.start is None or self.stop is None:
            return None
        across = np.arange(self.end - self.begin)
        return (across < self.start[:, None]) | (across >= self.stop[:, None])


class Shape(NamedTuple):
    """How large tiles are: at most so many cells, and at most so many rows of the window."""

    cells: int
    across: int


def tiles(
    windows: Windows, low: Ints, high: Ints, alive: Bools | None, shape: Shape
) -> Iterator[tuple[int, Tile]]:
    """Tiles that cover all pairs in time, each with the number of pairs in time in it."""
    first, last = windows.extents
    overlaps = Overlaps(*window_range(windows, low, high, alive), len(windows))
    for k in overlaps.occupied():
        picks, window = overlaps.of(k), windows.ordered[k]
        if not len(picks):
            continue
        early, late = low.take(picks), high.take(picks)
        inside = (early <= first[k]) & (late >= last[k])
        whole = picks[inside]
        if len(whole):
            yield from _whole(window, whole, shape)
        if len(whole) < len(picks):
            partly = ~inside
            yield from _partly(window, picks[partly], early[partly], late[partly], shape)


def _whole(window: BasicWindow, picks: Ints, shape: Shape) -> Iterator[tuple[int, Tile]]:
    width = min(len(window.rows), shape.across)
    height = max(1, shape.cells // width)
    for top in range(0, len(picks), height):
        chosen = picks[top : top + height]
        for begin in range(0, len(window.rows), width):
            end = min(begin + width, len(window.rows))
            yield len(chosen) * (end - begin), Tile(window, chosen, begin, end, None, None)


def _partly(
    window: BasicWindow, picks: Ints, low: Ints, high: Ints, shape: Shape
) -> Iterator[tuple[int, Tile]]:
    """Partial results next to each other in time share a tile, so little of it is outside."""
    start: Ints = window.times.searchsorted(low)
    stop: Ints = window.times.searchsorted(high, "right")
    some = np.flatnonzero(stop > start)
    if len(some) < len(picks) or not is_sorted(start):
        some = some[start.take(some).argsort(kind="stable")]
        picks, start, stop = picks.take(some), start.take(some), stop.take(some)
    height = max(1, shape.cells // min(len(window.rows), shape.across))
    for top in range(0, len(picks), height):
        part = slice(top, top + height)
        chosen, starts, stops = picks[part], start[part], stop[part]
        left, right = int(starts.min()), int(stops.max())
        for begin in range(left, right, shape.across):
            end = min(begin + shape.across, right)
            starts_here, stops_here = starts.clip(begin, end) - begin, stops.clip(begin, end) - begin
            count = int((stops_here - starts_here).sum())
            if count:
                yield count, Tile(window, chosen, begin, end, starts_here, stops_here)
