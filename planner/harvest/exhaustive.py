"""`exhaustive`: the best setting there is, for tests and small joins.

All numbers of slices per hop are tried for each direction. A setting that costs no less and finds no more
than another one is never part of the best, so only the others, the frontier, are kept:

    direction 1 --frontier--+
                            +--sums--frontier--+
    direction 2 --frontier--+                  |
                                               +--the best pair within the budget
    direction 3 --frontier---------------------+
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparkshed.planner.harvest.model import Choice, JoinModel
from sparkshed.planner.harvest.ranks import RankedDirection

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

MAX_SETTINGS = 10_000_000
"""More settings of a direction, or pairs of frontiers, are refused."""

_ROUNDING = 1e-12


def exhaustive(model: JoinModel, budget: float) -> Choice:
    """The setting with the largest output within the budget, slices taken in rank order.

    Raises:
        ValueError: If there are too many settings to try.
    """
    limit = budget * (1 + _ROUNDING)
    fronts = [_Front.of_direction(RankedDirection(direction), limit) for direction in model.directions]
    half = (len(fronts) + 1) // 2
    left, right = _merged(fronts[:half], limit), _merged(fronts[half:], limit)
    # For each point on the left, the dearest on the right that still fits: outputs ascend with costs.
    partner = np.searchsorted(right.cost, limit - left.cost, side="right") - 1
    output = np.where(partner >= 0, left.output + right.output[partner], -1.0)
    best = int(output.argmax())
    counts = left.counts(best) + right.counts(int(partner[best]))
    directions = zip(model.directions, counts, strict=True)
    setting = tuple(RankedDirection(direction).setting(list(numbers)) for direction, numbers in directions)
    return Choice(setting, setting)


class _Front:
    """Undominated (cost, output) pairs, both ascending, and where each came from."""

    __slots__ = ("_left", "_picked", "_right", "_shape", "cost", "output")

    def __init__(self, cost: Floats, output: Floats, shape: tuple[int, ...], limit: float) -> None:
        order = np.lexsort((-output, cost))
        order = order[: np.searchsorted(cost[order], limit, side="right")]
        heights = output[order]
        before = np.concatenate(([-1.0], np.maximum.accumulate(heights)[:-1])) if len(order) else heights
        self._picked: Numbers = order[heights > before]
        self._shape = shape
        self._left: _Front | None = None
        self._right: _Front | None = None
        self.cost, self.output = cost[self._picked], output[self._picked]

    @classmethod
    def of_direction(cls, direction: RankedDirection, limit: float) -> _Front:
        """All settings of a direction; the first one is off."""
        shape = tuple(hop.slices for hop in direction.hops)
        _check(shape)
        cost, entering, output = np.zeros(1), np.full(1, direction.rate), np.full(1, direction.worth)
        for hop in direction.hops:
            cost = np.add.outer(cost, np.zeros(hop.slices)) + np.multiply.outer(entering, hop.cost[1:])
            entering = np.multiply.outer(entering, hop.partials[1:]).ravel()
            output = np.multiply.outer(output, hop.share[1:]).ravel()
            cost = cost.ravel()
        return cls(np.concatenate(([0.0], cost)), np.concatenate(([0.0], output)), shape, limit)

    @classmethod
    def of_pair(cls, left: _Front, right: _Front, limit: float) -> _Front:
        """All sums of two frontiers."""
        shape = (len(left.cost), len(right.cost))
        _check(shape)
        cost = np.add.outer(left.cost, right.cost).ravel()
        output = np.add.outer(left.output, right.output).ravel()
        front = cls(cost, output, shape, limit)
        front._left, front._right = left, right
        return front

    def counts(self, position: int) -> list[tuple[int, ...]]:
        """The numbers of slices behind a point, for each direction and hop."""
        picked = int(self._picked[position])
        if self._left is None or self._right is None:
            if picked == 0:
                return [(0,) * len(self._shape)]
            return [tuple(int(k) + 1 for k in np.unravel_index(picked - 1, self._shape))]
        left, right = divmod(picked, self._shape[1])
        return self._left.counts(left) + self._right.counts(right)


class _Nothing(_Front):
    """The frontier of no direction at all."""

    __slots__ = ()

    def __init__(self) -> None:
        self.cost, self.output = np.zeros(1), np.zeros(1)

    def counts(self, position: int) -> list[tuple[int, ...]]:
        """Nothing is chosen."""
        return []


def _merged(fronts: list[_Front], limit: float) -> _Front:
    if not fronts:
        return _Nothing()
    front = fronts[0]
    for other in fronts[1:]:
        front = _Front.of_pair(front, other, limit)
    return front


def _check(shape: tuple[int, ...]) -> None:
    size = 1
    for length in shape:
        size *= length
    if size > MAX_SETTINGS:
        message = (
            f"exhaustive would have to try {size} settings at once; at most {MAX_SETTINGS} are allowed. "
            "Use chooser lagrange, which is never worse, or fewer basic windows."
        )
        raise ValueError(message)
