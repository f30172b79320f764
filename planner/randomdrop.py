"""RandomDrop: how much of each stream to keep in front of a join that then runs in full.

Keeping the shares x_1 .. x_m leaves the share x_1 · … · x_m of the results. A hop's work shrinks with the
probing stream and with every stream probed up to it:

    direction i, R_i = (l, k)      x_i·x_l·(work of hop 1)  +  x_i·x_l·x_k·(work of hop 2)

In y = log x that is a sum of exponentials, so the best y solves a convex programme, a geometric one:

    maximise  y_1 + … + y_m    with  log C(y) ≤ log capacity  and  y ≤ 0

An interior-point method solves it in some fifteen steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log, sqrt

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_GAP = 1e-9  # the output found is within this share of the best one
_SHRINK = 10.0  # how much smaller the gap is to become in a step
_STEPS = 100  # far more than needed


@dataclass(frozen=True, slots=True)
class DropHop:
    """One probe when nothing is dropped.

    Attributes:
        target: Number of the probed stream.
        cost: Work units of one probe.
        partials: Partial results it finds.
    """

    target: int
    cost: float
    partials: float

    def __post_init__(self) -> None:
        _check(cost=self.cost, partials=self.partials)


@dataclass(frozen=True, slots=True)
class DropDirection:
    """The work for new rows of one stream when nothing is dropped.

    Attributes:
        rate: Rows per second.
        hops: In the direction's order.
    """

    rate: float
    hops: tuple[DropHop, ...]

    def __post_init__(self) -> None:
        _check(rate=self.rate)


def _check(**values: float) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            message = f"{name} must be finite and not negative, found {value}."
            raise ValueError(message)


def keep_fractions(
    directions: Sequence[DropDirection], capacity: float, output_cost: float = 1.0
) -> tuple[float, ...]:
    """The share of each stream to keep, so that the join fits and its output is the largest.

    Args:
        directions: One for each stream, in the order of their numbers.
        capacity: Work units per second.
        output_cost: Work units of one result.

    Returns:
        x_i between 0 and 1. All 1 if everything fits, all 0 without capacity.

    >>> pair = [DropDirection(10, (DropHop(1, 20, 0),)), DropDirection(10, (DropHop(0, 20, 0),))]
    >>> [round(x, 6) for x in keep_fractions(pair, capacity=100)]
    [0.5, 0.5]
    """
    streams = len(directions)
    work, members = _terms(directions, output_cost)
    if not capacity < work.sum():
        return (1.0,) * streams
    if capacity <= 0:
        return (0.0,) * streams
    y = _solve(np.log(work), members, log(capacity))
    return tuple(np.exp(_fit(y, np.log(work), members, log(capacity))).tolist())


def _terms(directions: Sequence[DropDirection], output_cost: float) -> tuple[Floats, Floats]:
    """Work per set of streams that it shrinks with, and the sets as rows of zeros and ones."""
    streams = len(directions)
    work: dict[frozenset[int], float] = {}
    for origin, direction in enumerate(directions):
        if sorted([origin, *(hop.target for hop in direction.hops)]) != list(range(streams)):
            message = f"Direction {origin} must probe every other stream once, found {direction.hops}."
            raise ValueError(message)
        entering, joined = direction.rate, frozenset([origin])
        for hop in direction.hops:
            joined |= {hop.target}
            work[joined] = work.get(joined, 0.0) + entering * hop.cost
            entering *= hop.partials
        work[joined] = work.get(joined, 0.0) + entering * output_cost
    terms = [(value, joined) for joined, value in work.items() if value > 0]
    members = np.array([[float(s in joined) for s in range(streams)] for _, joined in terms])
    return np.array([value for value, _ in terms]), members.reshape(len(terms), streams)


def _solve(weights: Floats, members: Floats, limit: float) -> Floats:
    """The best y, by a primal-dual interior-point method.

    With a multiplier ν for the capacity and λ_i for y_i ≤ 0, the best y has

        ν · ∂log C/∂y_i + λ_i = 1,    ν · (limit − log C) = 0,    λ_i · y_i = 0:

    every stream that is not kept whole takes part in the same amount of work. Newton's method solves these
    equations with a small number in place of the zeros, and the number shrinks at each step.

    Args:
        weights: Logarithm of each term's work.
        members: The streams of each term.
        limit: Logarithm of the capacity.
    """
    streams = members.shape[1]
    # Each term has two streams or more, so this costs at most half of the capacity.
    start = min(0.5, sqrt(np.exp(limit - np.logaddexp.reduce(weights)) / 2))
    y = np.full(streams, log(start))
    slack, parts = _slack(y, weights, members, limit)
    bound, price = -1.0 / y, 1.0 / slack
    for _ in range(_STEPS):
        gap = price * slack - bound @ y
        slope = parts @ members  # of log C
        if gap <= _GAP and abs(price * slope + bound - 1.0).max() <= _GAP:
            break
        target = gap / (streams + 1) / _SHRINK
        system = np.empty((streams + 1, streams + 1))
        bend = (members.T * parts) @ members - np.outer(slope, slope)
        system[:-1, :-1] = price * bend - np.diag(bound / y)
        system[:-1, -1] = system[-1, :-1] = slope
        system[-1, -1] = -slack / price
        wanted = np.append(1.0 - price * slope + target / y, slack - target / price)
        *steps, price_step = np.linalg.solve(system, wanted)
        step = np.array(steps)
        bound_step = -bound - (target + bound * step) / y
        length = _inside(np.append(bound, [price, *-y]), np.append(bound_step, [price_step, *-step]))
        closest = 0.01 * slack
        slack, parts = _slack(y + length * step, weights, members, limit)
        while slack < closest:
            length /= 2
            slack, parts = _slack(y + length * step, weights, members, limit)
        y, bound, price = y + length * step, bound + length * bound_step, price + length * price_step
    # One of the two is zero at the best y, the smaller one. Something must be dropped, though.
    whole = bound > -y
    return y if whole.all() else np.where(whole, 0.0, y)


def _inside(values: Floats, step: Floats) -> float:
    """How much of a step leaves all values positive."""
    shrinking = step < 0
    return min(1.0, 0.99 * float((-values[shrinking] / step[shrinking]).min(initial=np.inf)))


def _slack(y: Floats, weights: Floats, members: Floats, limit: float) -> tuple[float, Floats]:
    """The distance to the capacity, limit − log C(y), and each term's share of the work."""
    exponents = weights + members @ y
    top = exponents.max()
    parts = np.exp(exponents - top)
    total = parts.sum()
    return float(limit - top - log(total)), parts / total


def _fit(y: Floats, weights: Floats, members: Floats, limit: float) -> Floats:
    """Moves the streams that are not whole together, until the work is exactly the capacity."""
    dropped = y < 0
    for _ in range(20):
        exponents = weights + members @ y
        work = float(np.logaddexp.reduce(exponents))
        pull = float(np.exp(exponents - work) @ (members @ dropped))
        if pull == 0 or abs(work - limit) <= 1e-14 * max(1.0, abs(limit)):
            break
        y = np.where(dropped, np.minimum(y + (limit - work) / pull, 0.0), 0.0)
    return y
