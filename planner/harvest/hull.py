"""The concave hull of one direction, built hop by hop from the last one."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import numpy.typing as npt

from sparkshed.planner.harvest.model import DirectionModel, DirectionSetting, HopModel, JoinModel

Floats = npt.NDArray[np.float64]


class DirectionHull:
    """Corners of the concave hull of a direction's (cost, output) pairs; the first one is off, (0, 0).

    A *tail* is a choice of slices for a hop and all later ones. For one partial result that enters the hop,
    it costs T and keeps the share Q of the results. Slice k in front of the tail (T', Q') adds share[k]·Q' to
    Q and cost[k] + partials[k]·T' to T, whatever else is chosen. So for each tail of the next hop the best
    choices of any size are found by taking slices by that ratio; what a probe costs anyway comes on top:

        tails of hop j+1          hop j: slices by ratio, added up         tails of hop j
        (T', Q') corner a   --->  o-o-o-o
        (T', Q') corner b   --->  o--o-o---o                     --->      corners of the hull of all
        (T', Q') corner c   --->  o---o---o-----o

    What is below the hull of the tails is best for no price of work, whatever the head in front
    of it, so it is dropped at each hop. This is exact, also if partial results and final results are
    spread differently over the slices.

    Attributes:
        cost: C_i at each corner, ascending.
        slopes: Output per cost of each edge, descending; one fewer than corners.
    """

    __slots__ = ("_direction", "_layers", "cost", "slopes")

    def __init__(self, direction: DirectionModel) -> None:
        self._direction = direction
        self._layers: list[_Layer] = []
        self.cost: list[float] = [0.0]
        self.slopes: list[float] = []
        worth = direction.rate * direction.results
        if worth == 0.0:
            return
        cost, share = np.zeros(1), np.ones(1)
        for hop in reversed(direction.hops):
            layer = _Layer(hop, cost, share)
            self._layers.append(layer)
            cost, share = layer.cost, layer.share
            if not len(cost):
                return
        self.cost += (direction.rate * cost).tolist()
        output = [0.0, *(worth * share).tolist()]
        slope = inf
        for (low, few), (high, many) in pairwise(zip(self.cost, output, strict=True)):
            # Descending by construction; rounding must not put a later edge in front.
            slope = min(slope, (many - few) / (high - low) if high > low else inf)
            self.slopes.append(slope)

    def setting(self, corner: int) -> DirectionSetting:
        """The slices of each hop at a corner."""
        if corner == 0:
            return self._direction.off
        slices = []
        tail = corner - 1
        for layer in reversed(self._layers):
            chosen, tail = layer.chosen(tail)
            slices.append(chosen)
        return tuple(slices)


def price_of(model: JoinModel, budget: float) -> float:
    """μ: output per work at which the budget is used up; 0 if it is not."""
    edges = []
    for direction in model.directions:
        hull = DirectionHull(direction)
        edges += [(s, high - low) for s, (low, high) in zip(hull.slopes, pairwise(hull.cost), strict=True)]
    for slope, cost in sorted(edges, reverse=True):
        budget -= cost
        if budget < 0:
            return slope
    return 0.0


class _Layer:
    """The tails that begin with one hop: corners of their hull, without the one that is off."""

    __slots__ = ("_order", "_picked", "cost", "share")

    def __init__(self, hop: HopModel, cost: Floats, share: Floats) -> None:
        # One row for each tail of the next hop, one column for each slice.
        gain = np.multiply.outer(share, np.array(hop.share))
        work = np.multiply.outer(cost, np.array(hop.partials)) + np.array(hop.cost)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(gain > 0.0, work / gain, inf)
        self._order = ratio.argsort(axis=1, kind="stable")
        gains = np.take_along_axis(gain, self._order, axis=1).cumsum(axis=1).ravel()
        works = (hop.base + np.take_along_axis(work, self._order, axis=1).cumsum(axis=1)).ravel()
        self._picked = _corners(works, gains)
        self.cost, self.share = works[self._picked], gains[self._picked]

    def chosen(self, tail: int) -> tuple[tuple[int, ...], int]:
        """The slices of this hop in one of its tails, and the number of the tail behind them."""
        behind, last = divmod(int(self._picked[tail]), self._order.shape[1])
        return tuple(sorted(self._order[behind, : last + 1].tolist())), behind


def _corners(x: Floats, y: Floats) -> npt.NDArray[np.intp]:
    """Positions of the corners of the upper hull of the points and (0, 0), which is not among them."""
    order = np.lexsort((-y, x))
    heights = y[order]
    before = np.concatenate(([0.0], np.maximum.accumulate(heights)[:-1]))
    order = order[heights > before]
    hull: list[int] = []
    xs, ys = [0.0], [0.0]
    for position, px, py in zip(order.tolist(), x[order].tolist(), y[order].tolist(), strict=True):
        while hull and (ys[-1] - ys[-2]) * (px - xs[-1]) <= (py - ys[-1]) * (xs[-1] - xs[-2]):
            hull.pop()
            xs.pop()
            ys.pop()
        hull.append(position)
        xs.append(px)
        ys.append(py)
    return np.array(hull, dtype=np.intp)
