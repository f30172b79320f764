"""What the operator counts. Counters only grow; readers take differences."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class StreamCounters:
    """Rows of one stream: arrived, of these dropped because their time is NULL, and expired."""

    arrived: int = 0
    null_time: int = 0
    expired: int = 0


@dataclass(slots=True)
class DirectionCounters:
    """Work of one direction.

    Attributes:
        comparisons: Index entries touched or rows compared. Equality: entries with the same key; bands:
            entries in the range of values; sets: postings read; vectors and scans: rows in the time range.
        searches: Steps of the binary searches that bands make, one search per probe and basic window.
        results: Results produced.
        partials: Partial results that left each hop.
    """

    comparisons: int = 0
    searches: int = 0
    results: int = 0
    partials: list[int] = field(default_factory=list)

    @property
    def work(self) -> int:
        """Work units: one per comparison, search step and result."""
        return self.comparisons + self.searches + self.results


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
