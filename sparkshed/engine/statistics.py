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
    """Work of one direction: index entries touched or rows compared, and results produced.

    `partials[j]` counts the partial results that left hop j.
    """

    comparisons: int = 0
    results: int = 0
    partials: list[int] = field(default_factory=list)

    @property
    def work(self) -> int:
        """Work units: one per comparison and one per result."""
        return self.comparisons + self.results


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
