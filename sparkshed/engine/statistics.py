"""What the operator counts. Counters only grow; readers take differences."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class StreamCounters:
    """Rows of one stream.

    Attributes:
        arrived: All rows that came.
        null_time: Of these dropped because their time is NULL.
        shed: Of these dropped by the strategy in front of the join.
        expired: Dropped from the windows because nothing can match them any more.
        evicted: Dropped from the windows by the strategy.
    """

    arrived: int = 0
    null_time: int = 0
    shed: int = 0
    expired: int = 0
    evicted: int = 0


@dataclass(slots=True)
class HopCounters:
    """Work of one hop.

    Attributes:
        comparisons: Index entries touched or rows compared. Equality: entries with the same key; bands:
            entries in the range of values; sets: postings read; vectors and scans: rows in the time range.
        searches: Steps of the binary searches that bands make, one search per probe and basic window.
        partials: Partial results that left the hop.
    """

    comparisons: int = 0
    searches: int = 0
    partials: int = 0

    @property
    def work(self) -> int:
        """Work units: one per comparison and search step."""
        return self.comparisons + self.searches


@dataclass(slots=True)
class DirectionCounters:
    """Work of one direction, hop by hop, and its results.

    `charges` are work units of its rows that a strategy counts besides, such as those of entering windows.
    """

    hops: list[HopCounters] = field(default_factory=list)
    results: int = 0
    charges: int = 0

    @property
    def comparisons(self) -> int:
        """Comparisons of all hops."""
        return sum(hop.comparisons for hop in self.hops)

    @property
    def searches(self) -> int:
        """Search steps of all hops."""
        return sum(hop.searches for hop in self.hops)

    @property
    def partials(self) -> list[int]:
        """Partial results that left each hop."""
        return [hop.partials for hop in self.hops]

    @property
    def work(self) -> int:
        """Work units: one per comparison, search step and result, and what is charged besides."""
        return sum(hop.work for hop in self.hops) + self.results + self.charges


@dataclass(slots=True)
class Statistics:
    """Counters of the whole operator, per stream and per direction."""

    streams: list[StreamCounters] = field(default_factory=list)
    directions: list[DirectionCounters] = field(default_factory=list)

    @property
    def comparisons(self) -> int:
        """Comparisons of all directions."""
        return sum(direction.comparisons for direction in self.directions)

    @property
    def results(self) -> int:
        """Results of all directions."""
        return sum(direction.results for direction in self.directions)

    @property
    def work(self) -> int:
        """Work units of all directions."""
        return sum(direction.work for direction in self.directions)

    def since(self, before: Statistics) -> Statistics:
        """What was counted after an earlier copy of the same counters."""
        found = deepcopy(self)
        for stream, former in zip(found.streams, before.streams, strict=True):
            _subtract(stream, former)
        for direction, former_direction in zip(found.directions, before.directions, strict=True):
            direction.results -= former_direction.results
            direction.charges -= former_direction.charges
            for hop, former_hop in zip(direction.hops, former_direction.hops, strict=True):
                _subtract(hop, former_hop)
        return found


def _subtract(own: StreamCounters | HopCounters, former: StreamCounters | HopCounters) -> None:
    for count in fields(own):
        setattr(own, count.name, getattr(own, count.name) - getattr(former, count.name))
