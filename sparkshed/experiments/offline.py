"""The most that any policy could deliver, with all arrivals known beforehand: OPT.

A row that arrives probes what is held, whether or not it is held afterwards. So what a held row yields is
the number of partners that arrive while it is held, whatever else is held, and the best choice is a flow:
places of the buffer travel along the time line, and leave it to hold a row for some of its matches::

    line    ●────●────●────●────●────●      as many places as the buffer has
             ╲       ╱    ╱
    row       ○─1─○───1──○                  one place; each match yields one result

This holds for two streams only: of three rows, two must be held at once. One path of the flow after the
other is found, so the effort grows with places x (rows + matches).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from sparkshed.experiments.feeds import SECOND

#: A match of a held row: which row, and the arrival that it matches.
Match = tuple[int, int]


def matches_of(tables: Sequence[pa.Table], window: float) -> tuple[list[int], list[Match]]:
    """The streams that rows of two streams belong to, in the order of their arrival, and all matches.

    Rows match if their `k` are equal and their times at most `window` seconds apart.
    """
    times = np.concatenate([table["ts"].cast(pa.int64()).to_numpy() for table in tables])
    keys = np.concatenate([table["k"].to_numpy() for table in tables])
    streams = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    order = np.lexsort((streams, times))
    times, keys, streams = times[order], keys[order], streams[order]
    reach = round(window * SECOND)
    found: list[Match] = []
    for late in range(len(times)):
        first = int(times.searchsorted(times[late] - reach))
        early = slice(first, late)
        same = (keys[early] == keys[late]) & (streams[early] != streams[late])
        found += [(int(row), late) for row in np.flatnonzero(same) + first]
    return streams.tolist(), found


def best_output(streams: Sequence[int], matches: Sequence[Match], places: int, *, unified: bool) -> int:
    """The most results with so many places, for both streams together or for each of them half."""
    if unified:
        return _most(len(streams), matches, places)
    own = [[match for match in matches if streams[match[0]] == stream] for stream in (0, 1)]
    return sum(_most(len(streams), part, places // 2) for part in own)


class _Flow:
    """Edges of a flow with gains, in both directions: edge `e` is undone by edge `e ^ 1`."""

    def __init__(self) -> None:
        self.to: list[int] = []
        self.room: list[int] = []
        self.cost: list[int] = []
        self.out: list[list[int]] = []

    def node(self) -> int:
        self.out.append([])
        return len(self.out) - 1

    def edge(self, one: int, other: int, room: int, cost: int = 0) -> None:
        for start, end, size, price in ((one, other, room, cost), (other, one, 0, -cost)):
            self.out[start].append(len(self.to))
            self.to.append(end)
            self.room.append(size)
            self.cost.append(price)


def _most(arrivals: int, matches: Sequence[Match], places: int) -> int:
    """Send one place after the other along the way that gains most."""
    flow = _Flow()
    line = [flow.node() for _ in range(arrivals + 1)]
    for now, then in zip(line, line[1:], strict=False):
        flow.edge(now, then, places)
    by_row: dict[int, list[int]] = {}
    for row, at in matches:
        by_row.setdefault(row, []).append(at)
    order = [(number, node) for number, node in enumerate(line)]
    for row, ats in by_row.items():
        # A place that holds the row from its arrival on is free again for the arrival that it last matched.
        here, room = line[row + 1], 1
        for at in sorted(ats):
            held = flow.node()
            order.append((at, held))
            flow.edge(here, held, room, -1)
            flow.edge(held, line[at + 1], 1)
            here = held
    heights = _first_heights(flow, [node for _, node in sorted(order)])
    total = 0
    for _ in range(places):
        gained = _augment(flow, line[0], line[-1], heights)
        if not gained:
            break
        total += gained
    return total


def _first_heights(flow: _Flow, order: Sequence[int]) -> list[int]:
    """The dearest ways from the start; edges go forward in time, so one pass is enough."""
    heights = [0] * len(flow.out)
    for node in order:
        for edge in flow.out[node]:
            if flow.room[edge]:
                heights[flow.to[edge]] = min(heights[flow.to[edge]], heights[node] + flow.cost[edge])
    return heights


def _augment(flow: _Flow, start: int, end: int, heights: list[int]) -> int:
    """Send one place along the way that gains most; returns the gain."""
    infinite = 1 << 60
    far = [infinite] * len(flow.out)
    came = [-1] * len(flow.out)
    far[start] = 0
    heap = [(0, start)]
    while heap:
        distance, node = heappop(heap)
        if distance > far[node]:
            continue
        for edge in flow.out[node]:
            if flow.room[edge]:
                other = flow.to[edge]
                step = distance + flow.cost[edge] + heights[node] - heights[other]
                if step < far[other]:
                    far[other], came[other] = step, edge
                    heappush(heap, (step, other))
    for node, distance in enumerate(far):
        heights[node] += min(distance, far[end])
    node = end
    while node != start:
        edge = came[node]
        flow.room[edge] -= 1
        flow.room[edge ^ 1] += 1
        node = flow.to[edge ^ 1]
    return heights[start] - heights[end]
