"""What the first hops of rows that harvest found, beside what shredded rows promised.

These rows are many, and first hops make most of the partial results, which make most of the work. So the
full work is known better for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import DirectionModel, JoinModel
from sparkshed.planner.harvest.tally import Tally

#: Partial results that are pretended to have been found as expected.
_DOUBT = 10.0


@dataclass(frozen=True, slots=True)
class FirstHop:
    """What a probe of a first window finds in the slices that were harvested, by their numbers."""

    target: int
    partials: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Harvested:
    """Rows that harvested the same slices, what shredded rows promise there, and what they found."""

    rows: float
    found: float
    promised: Mapping[int, float]


def first_hops(learned: Learned, used: Configuration, interval: Tally) -> Sequence[FirstHop]:
    """Slices to plan with, scaled by one factor for each direction: found over expected partial results."""
    hops = []
    for origin, order in enumerate(used.orders):
        settings = _settings(learned, used, interval, origin)
        promised = {number: own for setting in settings for number, own in setting.promised.items()}
        expected = sum(setting.rows * sum(setting.promised.values()) for setting in settings)
        found = sum(setting.found for setting in settings)
        factor = (found + _DOUBT) / (expected + _DOUBT)
        hops.append(FirstHop(order[0], {number: own * factor for number, own in promised.items()}))
    return hops


def counted_first_hops(
    learned: Learned, used: Configuration, interval: Tally, taught: Tally
) -> Sequence[FirstHop]:
    """Slices to count the full work with: what all rows of the same time found together.

    One factor would carry what the cheap setting finds over to slices that only the dear one has.

    Args:
        learned: What shredded rows promise.
        used: What the interval's rows harvested.
        interval: What they found.
        taught: The tally that the promise comes from.
    """
    hops = []
    for origin, order in enumerate(used.orders):
        shredded = taught.directions[origin].hops.get((frozenset([origin]), order[0]))
        probes = 0.0 if shredded is None else shredded.probes
        told: dict[int, float] = {}
        # Most rows know best; the others tell of the slices that only they had.
        for own in sorted(_settings(learned, used, interval, origin), key=lambda own: -own.rows):
            before = sum(told.get(number, 0.0) for number in own.promised)
            fresh = {number: promise for number, promise in own.promised.items() if number not in told}
            met = max(0.0, own.found - own.rows * before)
            told |= _pooled(fresh, (met + probes * sum(fresh.values())) / (own.rows + probes))
        hops.append(FirstHop(order[0], told))
    return hops


def _settings(learned: Learned, used: Configuration, interval: Tally, origin: int) -> list[_Harvested]:
    """What rows of a direction harvested with either setting, or by probing everything, if any did."""
    numbers, partials = learned.numbers[origin][0], learned.model.directions[origin].hops[0].partials
    settings = []
    for harvest, (rows, found) in zip(
        (used.dear[origin], used.cheap[origin], None),
        interval.directions[origin].harvested.tolist(),
        strict=True,
    ):
        if rows > 0:
            places = learned.places(origin, harvest)[0]
            settings.append(_Harvested(rows, found, {numbers[k]: partials[k] for k in places}))
    return settings


def _pooled(promised: Mapping[int, float], mean: float) -> dict[int, float]:
    """Slices as promised, with another sum; all alike where nothing is promised."""
    total = sum(promised.values())
    if total <= 0:
        return dict.fromkeys(promised, mean / max(1, len(promised)))
    return {number: own * mean / total for number, own in promised.items()}


def with_first_hops(learned: Learned, orders: Sequence[Sequence[int]], found: Sequence[FirstHop]) -> Learned:
    """The model with the partial results that were found; hops to other streams stay as they are."""
    directions = list(learned.model.directions)
    for origin, hop in enumerate(found):
        if len(orders[origin]) > 1 and orders[origin][0] == hop.target:
            directions[origin] = _corrected(directions[origin], learned.numbers[origin][0], hop)
    return replace(learned, model=JoinModel(tuple(directions)))


def _corrected(direction: DirectionModel, numbers: Sequence[int], found: FirstHop) -> DirectionModel:
    first, *others = direction.hops
    known = zip(numbers, first.partials, strict=True)
    partials = tuple([found.partials.get(number, own) for number, own in known])
    return replace(direction, hops=(replace(first, partials=partials), *others))
