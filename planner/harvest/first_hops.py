"""What the first hops of rows that harvest found, beside what shredded rows promised.

These rows are many, and first hops make most of the partial results, which make most of the work. So the
full work is known better for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import DirectionModel, JoinModel
from sparkshed.planner.harvest.tally import Tally

#: Partial results that are pretended to have been found as expected.
_DOUBT = 10.0


@dataclass(frozen=True, slots=True)
class FirstHop:
    """The slices of a first window that were harvested, and found over expected partial results."""

    target: int
    slices: frozenset[int]
    factor: float


def first_hops(learned: Learned, used: Configuration, interval: Tally) -> Sequence[FirstHop]:
    """Compare what an interval's rows found with what the model says, for each direction."""
    hops = []
    for origin, (direction, known) in enumerate(
        zip(learned.model.directions, interval.directions, strict=True)
    ):
        partials = direction.hops[0].partials
        expected, slices = 0.0, set[int]()
        for harvest, rows in zip(
            (used.dear[origin], used.cheap[origin]), known.harvested[:, 0].tolist(), strict=True
        ):
            if rows > 0:
                places = learned.places(origin, harvest)[0]
                expected += rows * sum([partials[place] for place in places])
                slices.update(learned.numbers[origin][0][place] for place in places)
        found = float(known.harvested[:, 1].sum())
        factor = (found + _DOUBT) / (expected + _DOUBT)
        hops.append(FirstHop(used.orders[origin][0], frozenset(slices), factor))
    return hops


def with_first_hops(learned: Learned, orders: Sequence[Sequence[int]], found: Sequence[FirstHop]) -> Learned:
    """The model with the partial results that were found; hops to other streams stay as they are."""
    directions = list(learned.model.directions)
    for origin, hop in enumerate(found):
        if len(orders[origin]) > 1 and orders[origin][0] == hop.target:
            directions[origin] = _corrected(directions[origin], learned.numbers[origin][0], hop)
    return replace(learned, model=JoinModel(tuple(directions)))


def _corrected(direction: DirectionModel, numbers: Sequence[int], found: FirstHop) -> DirectionModel:
    first, *others = direction.hops
    partials = tuple(
        [
            own * found.factor if number in found.slices else own
            for own, number in zip(first.partials, numbers, strict=True)
        ]
    )
    return replace(direction, hops=(replace(first, partials=partials), *others))
