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


@dataclass(frozen=True, slots=True)
class FirstHop:
    """What a probe of a first window finds in the slices that were harvested, by their numbers."""

    target: int
    partials: Mapping[int, float]


def first_hops(learned: Learned, taught: Tally, used: Configuration, interval: Tally) -> Sequence[FirstHop]:
    """What an interval's rows and shredded rows found together, for each direction.

    Args:
        learned: What shredded rows promise.
        taught: The tally that this was learned from.
        used: What the interval's rows harvested.
        interval: What they found.
    """
    hops = []
    for origin, known in enumerate(interval.directions):
        target, found = used.orders[origin][0], dict[int, float]()
        numbers, partials = learned.numbers[origin][0], learned.model.directions[origin].hops[0].partials
        shredded = taught.directions[origin].hops.get((frozenset([origin]), target))
        probes = 0.0 if shredded is None else shredded.probes
        settings = zip(known.harvested.tolist(), (used.dear[origin], used.cheap[origin]), strict=True)
        # Most rows know best; the others tell of the slices that only they had.
        for (rows, met), harvest in sorted(settings, key=lambda own: -own[0][0]):
            if rows > 0:
                places = learned.places(origin, harvest)[0]
                before = sum(found.get(numbers[place], 0.0) for place in places)
                own = {numbers[k]: partials[k] for k in places if numbers[k] not in found}
                found |= _scaled(own, max(0.0, met - rows * before), rows, probes)
        hops.append(FirstHop(target, found))
    return hops


def _scaled(promised: dict[int, float], met: float, rows: float, probes: float) -> dict[int, float]:
    """The slices as promised, with a sum that also counts what rows met."""
    total = sum(promised.values())
    mean = (met + probes * total) / (rows + probes)
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
