"""How `adaptive` selects: slices in rank order, until a share of a direction's work is used up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sparkshed.planner.harvest.model import HopModel
from sparkshed.planner.harvest.ranks import RankedHop
from sparkshed.planner.slices import Slices, Span


@dataclass(frozen=True, slots=True)
class Selection:
    """What rows of one direction probe; slices are places in the model.

    Attributes:
        whole: Slices that all rows probe.
        part: A slice that all rows probe in part.
        share: Which share of it.
        some: Slices that only some rows probe.
        chance: Which share of the rows.
    """

    whole: tuple[int, ...] = ()
    part: int | None = None
    share: float = 0.0
    some: tuple[int, ...] = ()
    chance: float = 0.0

    def extra(self, hop: HopModel) -> float:
        """Work units of what some rows probe besides."""
        if not self.some:
            return 0.0
        return sum([hop.cost[k] for k in self.some]) + (0.0 if self.whole else hop.base)


def ranked(hop: HopModel, numbers: Sequence[int], *, learned: bool) -> list[int]:
    """The order in which slices are probed.

    Args:
        hop: What each slice costs and finds.
        numbers: Of the slices.
        learned: By o_ij, results per unit of work; otherwise the nearest in time first.

    >>> hop = HopModel(cost=(1, 1, 1), partials=(0, 0, 0), share=(1, 2, 5))
    >>> ranked(hop, [-1, 0, 1], learned=True), ranked(hop, [-1, 0, 1], learned=False)
    ([2, 1, 0], [1, 0, 2])
    """
    if learned:
        return RankedHop(hop).order
    return sorted(range(len(numbers)), key=lambda k: (max(numbers[k], -numbers[k] - 1), -numbers[k]))


def select(hop: HopModel, order: Sequence[int], allowed: float, endless: Collection[int]) -> Selection:
    """Probe slices in rank order, as far as the work that is allowed for each row goes.

        rank     1       2       3       4
               |#######|#######|####...|.......|
               |<---- allowed ---->|

    Where the search in an index costs so much that little would be left for the slices, only some rows
    probe, as many slices as make the search worth it. So do they with a last slice that has no end, of which
    no part can be told.

    Args:
        hop: What each slice costs and finds.
        order: The ranks.
        allowed: Work units for each row.
        endless: Slices without an end in time.

    >>> hop = HopModel(cost=(4, 4, 4), partials=(0, 0, 0), share=(1, 6, 3))
    >>> select(hop, [1, 2, 0], 6, ())
    Selection(whole=(1,), part=2, share=0.5, some=(), chance=0.0)
    """
    if allowed <= 0:
        return Selection()
    worth = _worth_a_search(hop, order)
    least = hop.base + sum([hop.cost[k] for k in worth])
    if allowed < least:
        return Selection(some=tuple(worth), chance=allowed / least)
    left = allowed - hop.base
    whole: list[int] = []
    for place in order:
        cost = hop.cost[place]
        if cost > left:
            if place in endless:
                return Selection(tuple(whole), some=(place,), chance=left / cost)
            return Selection(tuple(whole), part=place, share=left / cost)
        whole.append(place)
        left -= cost
    return Selection(tuple(whole))


def _worth_a_search(hop: HopModel, order: Sequence[int]) -> Sequence[int]:
    """The first slices that find the most for their work with the search; none where there is no search."""
    if hop.base <= 0:
        return ()
    work = accumulate((hop.cost[k] for k in order), initial=hop.base)
    found = accumulate((hop.share[k] for k in order), initial=0.0)
    ratios = [share / cost for share, cost in zip(found, work, strict=True)]
    return order[: ratios.index(max(ratios))]


def part_of(slices: Slices, number: int, share: float, chosen: Collection[int]) -> Span | None:
    """The part of a slice that is probed: beside slices that are, or else the nearest in time.

    >>> slices = Slices.of(20, 0, 10)
    >>> part_of(slices, 1, 0.3, [0]), part_of(slices, 0, 0.3, [1])
    (Span(start=10, stop=13), Span(start=7, stop=10))
    """
    span = slices.span(number)
    length = 0 if span is None else round(share * (span.stop - span.start))
    if span is None or length <= 0:
        return None
    later = number >= 0 if (number - 1 in chosen) == (number + 1 in chosen) else number - 1 in chosen
    return Span(span.start, span.start + length) if later else Span(span.stop - length, span.stop)


def share_of(slices: Slices, part: Span) -> tuple[int, float]:
    """The slice that a part belongs to, and which share of it that is: the inverse of :func:`part_of`."""
    number = min(max(part.start // slices.basic, slices.first), slices.last)
    span = slices.span(number)
    return number, 0.0 if span is None else (part.stop - part.start) / (span.stop - span.start)
