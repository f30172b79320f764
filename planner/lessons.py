"""What a shredded row sees, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparkshed.planner.harvest.model import DirectionModel

#: In how many steps the cost of a shredded row is met.
_LESSONS = 8
#: The share of the work that may be spent on windows that are not first in an order.
_TRIED = 0.01
#: Where a shredded row sees less than this share of its first window, seeing all of it tells much more of it.
_LITTLE = 0.5


def thins_for(
    direction: DirectionModel, share: float, dear: float, *, promised: bool = False
) -> tuple[float, ...]:
    """What share of each window a shredded row sees, to find a share of its results.

    Windows that are thinned alike show the most: as many results, of more rows. But the first windows
    then cost more than their share, so they are thinned more where that would be too dear.

    Args:
        direction: The model of the rows' direction.
        share: The share of results to be found.
        dear: How much more than its share of the work a shredded row may cost.
        promised: Whether the full work must be known well, because a share of it is promised.
    """
    hops = len(direction.hops)
    limit = dear * share * direction.full_cost / direction.rate
    for step in range(_LESSONS + 1):
        first = step / _LESSONS
        rest = (1 - first) / hops
        thins = (share ** (rest + first), *(share**rest for _ in range(hops - 1)))
        if lesson_work(direction, thins, sifts=sifts_for(direction, thins, promised=promised)) <= limit:
            break
    return thins


def sifts_for(direction: DirectionModel, thins: Sequence[float], *, promised: bool = False) -> bool:
    """Whether a shredded row probes its first window as a whole and leaves out partners afterwards.

    The search in an index costs the same for a share of the window. What the row then touches in vain is
    worth it as long as it costs no more than that: most of the work depends on what first hops find. Where a
    share of the full work is promised, and little of the window would be seen otherwise, it is worth as much
    as all else that the row does.
    """
    first = direction.hops[0]
    in_vain = (1 - thins[0]) * sum(first.cost)
    known = lesson_work(direction, thins) if promised and thins[0] < _LITTLE else 0.0
    worth = max(first.base, known)
    return len(direction.hops) > 1 and bool(0 < in_vain <= worth)


def try_for(direction: DirectionModel, thins: Sequence[float], shred: float, share: float) -> float:
    """What share of a window that is not first in their order shredded rows see.

    It is as much as costs a small share of the work, because orders are compared by it.
    """
    first = direction.hops[0]
    allowed = _TRIED * share * direction.full_cost / direction.rate / max(shred, 1e-9) - first.base
    return min(1.0, max(math.prod(thins), allowed / max(sum(first.cost), 1e-9)))


def lesson_work(
    direction: DirectionModel, thins: Sequence[float], tried: float | None = None, *, sifts: bool = False
) -> float:
    """Work of a row that sees a share of each window, and tries one more window than its order has."""
    first = direction.hops[0]
    tried = math.prod(thins) if tried is None else tried
    work = first.base + tried * sum(first.cost) if len(direction.hops) > 1 else 0.0
    entering = 1.0
    for place, (hop, thin) in enumerate(zip(direction.hops, thins, strict=True)):
        touched = 1.0 if sifts and not place else thin
        work += entering * (hop.base + touched * sum(hop.cost))
        entering *= thin * sum(hop.partials)
    return work
