"""The dual window: how many rows are dropped in front of the join, and how many join without a probe.

A row that is taken in costs a window update, and one that probes costs a probe as well. With V_w updates and
V_j probes per second, α = V_j/V_w, and a share k_r of the rows shed at the rear, rows are taken at the rate

    1/V_q = (1 − k_r)/V_j + 1/V_w

The formulas of the paper come first. What follows them is the same optimum for costs that depend on what a
probe finds, and for windows that hold the last n rows that *came*, as SQL has it: there a row that is dropped
in front also leaves a gap in its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparkshed.planner.kernels import LOOKUP
from sparkshed.planner.layout import ROW_COST
from sparkshed.planner.physical import MOST_WINDOWS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Work units of a row that enters and later leaves its windows: what receiving and indexing one costs.
UPDATE = ROW_COST
#: Work units of a probe before it compares anything: looking a key up in the windows.
PROBE = LOOKUP * MOST_WINDOWS

#: Yields below this have a bin of their own; above it there are so many bins for each doubling.
_FINE, _PER_OCTAVE = 32, 16
#: Bins of yields: enough for windows of a million rows.
BINS = _FINE + 15 * _PER_OCTAVE
#: Rows of a window beyond which the spread of yields around their mean is left out.
_SPREAD_ROWS = 5_000
#: Shares of probing rows that are tried where the best one is not at an end of a bin.
_STEPS = 201


def rear_share(taken: float, probes: float, updates: float) -> float:
    """k_r, the share of rows that must not probe when rows are taken at the rate V_q.

    >>> rear_share(taken=80, probes=100, updates=400)
    0.0
    >>> rear_share(taken=100, probes=100, updates=400)
    0.25
    """
    return min(1.0, max(0.0, 1.0 - probes * (1.0 / taken - 1.0 / updates)))


def binomial(rows: int, share: float) -> Floats:
    """The probabilities of 0, 1, … matches among so many rows that match with the same probability.

    >>> binomial(2, 0.5).tolist()
    [0.25, 0.5, 0.25]
    """
    if share <= 0 or share >= 1:
        sure = np.zeros(rows + 1)
        sure[rows if share >= 1 else 0] = 1.0
        return sure
    number = np.arange(1, rows + 1)
    steps = np.log((rows - number + 1) / number) + np.log(share / (1 - share))
    logs = np.concatenate([[0.0], np.cumsum(steps)]) + rows * np.log1p(-share)
    return np.asarray(np.exp(logs))


def mixture(own: Sequence[float], other: Sequence[float], rows: int) -> Floats:
    """P_i, the probability that a row has i matches among the last rows of the other stream.

    >>> mixture([0.5, 0.5], [1.0, 0.0], 2).tolist()
    [0.5, 0.0, 0.5]

    Args:
        own: The share of each value in the row's own stream.
        other: The share of the same values in the other stream.
        rows: W, the rows of the other stream's window.
    """
    found = np.zeros(rows + 1)
    shares, places = np.unique(np.asarray(other, np.float64), return_inverse=True)
    weights = np.bincount(places, np.asarray(own, np.float64), len(shares))
    for share, weight in zip(shares.tolist(), weights.tolist(), strict=True):
        if rows <= _SPREAD_ROWS:
            found += weight * binomial(rows, share)
        else:
            found[round(rows * share)] += weight
    return found


def output(shares: Floats, least: int, alpha: float) -> float:
    """O(M)/V_j: results for the time of one probe, if the rows with M matches and more probe.

    >>> output(np.array([0.5, 0.5]), 1, 0.5)
    0.5
    """
    probing = float(shares[least:].sum())
    found = float((np.arange(least, len(shares)) * shares[least:]).sum())
    return found / (alpha + probing) if alpha + probing > 0 else 0.0


def best_threshold(shares: Floats, alpha: float) -> int:
    """M*, the least number of matches that is worth a probe.

    Rows with M matches lower O(M), which is a mean, if and only if it is above M. So O rises up to the
    first M that is not below O(M), and falls from there on.

    >>> best_threshold(np.array([0.5, 0.3, 0.2]), 0.5)
    1
    """
    low, high = 0, len(shares) - 1
    while low < high:
        middle = (low + high) // 2
        if middle >= output(shares, middle, alpha):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, slots=True)
class Optimum:
    """Where the output is highest.

    Attributes:
        least: M*.
        rear: k_r*.
        speed: V_opt, rows per second.
    """

    least: int
    rear: float
    speed: float


def optimum(shares: Floats, probes: float, updates: float) -> Optimum:
    """M*, k_r* and V_opt = V_j/(α + 1 − k_r*) for V_j probes and V_w updates per second.

    >>> optimum(np.array([0.5, 0.25, 0.25]), 100, 100)
    Optimum(least=1, rear=0.5, speed=66.66666666666667)
    """
    alpha = probes / updates
    least = best_threshold(shares, alpha)
    rear = float(shares[:least].sum())
    return Optimum(least, rear, probes / (alpha + 1 - rear))


def front_share(arriving: float, speed: float) -> float:
    """k_f, the share of rows to drop in front so that they are taken at V_opt.

    >>> front_share(arriving=200, speed=50), front_share(arriving=40, speed=50)
    (0.75, 0.0)
    """
    return max(0.0, 1.0 - speed / arriving) if arriving > 0 else 0.0


# Costs that depend on what is found, and windows of rows that came ----------------------------


def bins_of(matches: Floats) -> Ints:
    """The bin of each yield.

    >>> bins_of(np.array([0.0, 3.4, 31.0, 32.0, 64.0])).tolist()
    [0, 3, 31, 32, 48]
    """
    fine = np.rint(matches)
    coarse = _FINE + np.floor(_PER_OCTAVE * np.log2(np.maximum(matches, _FINE) / _FINE))
    return np.minimum(np.where(fine < _FINE, fine, coarse), BINS - 1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Costs:
    """Work units.

    Attributes:
        scan: What a probe costs for the rows of a full window, whether they match or not.
        match: What it costs for each match.
        update: What a row costs that enters and leaves the windows.
        probe: What any probe costs.
    """

    scan: float
    match: float
    update: float = UPDATE
    probe: float = PROBE

    def full(self, matches: float) -> float:
        """A row that probes a full window, with so many matches on average."""
        return self.update + self.probe + self.scan + self.match * matches


@dataclass(frozen=True, slots=True)
class Split:
    """How load is shed: the share of rows that is kept in front, and that of these which do not probe.

    Attributes:
        keep: 1 − k_f.
        rear: k_r.
        speed: V_opt over V_s; above 1 nothing is dropped in front.
    """

    keep: float
    rear: float
    speed: float


def split(
    matches: Floats,
    shares: Floats,
    costs: Costs,
    budget: float,
    *,
    of_kept: bool = False,
    rear_only: bool = False,
) -> Split:
    """The best way to spend a share of the full join's work.

    >>> best = split(np.array([0.0, 10.0]), np.array([0.5, 0.5]), Costs(100, 1, 10, 0), 0.6)
    >>> best.keep, round(best.rear, 2), round(best.speed, 2)
    (1.0, 0.46, 1.03)

    Args:
        matches: Yields, ascending.
        shares: The share of rows with each of them.
        costs: Of rows and probes.
        budget: z, above 0 and below 1.
        of_kept: Whether windows hold the last n rows that were kept, as in the paper, and not those of the
            last n that came which were kept.
        rear_only: Drop nothing in front, whatever it costs.
    """
    limit = budget * costs.full(float((matches * shares).sum()))
    probing = np.concatenate([[0.0], np.cumsum(shares[::-1])])
    found = np.concatenate([[0.0], np.cumsum((matches * shares)[::-1])])
    steps = np.unique(np.concatenate([probing, np.linspace(0.0, probing[-1], _STEPS)]))
    results = np.interp(steps, probing, found)
    fixed = costs.update + steps * costs.probe
    varying = steps * costs.scan + costs.match * results
    if of_kept:
        speeds = limit / (fixed + varying)
        gained = speeds * results
    else:
        # keep · fixed + keep² · varying = limit
        speeds = 2 * limit / (fixed + np.sqrt(fixed**2 + 4 * varying * limit))
        gained = speeds**2 * results
    best = int(np.argmax(gained))
    speed, probes = float(speeds[best]), float(steps[best])
    if speed >= 1 or rear_only:
        # Nothing is dropped in front: as many rows probe as there is work for.
        probes = float(np.interp(limit, fixed + varying, steps))
    keep = 1.0 if rear_only else min(1.0, speed)
    return Split(keep, max(0.0, 1.0 - probes / float(probing[-1])), speed)
