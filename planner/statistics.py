"""What is known about the inputs: counts, times, and selectivities from a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sparkshed.sql.predicate import Predicate


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """Counts and times of one stream, after its own filters.

    `quantiles` are evenly spaced quantiles of the row times, first and last included; `top_share`
    is the share of the most frequent common key among sampled rows.
    """

    rows: int
    null_times: int = 0
    quantiles: tuple[int, ...] = ()
    top_share: float = 0.0

    @property
    def first(self) -> int:
        """Earliest time, in microseconds."""
        return self.quantiles[0] if self.quantiles else 0

    @property
    def last(self) -> int:
        """Latest time, in microseconds."""
        return self.quantiles[-1] if self.quantiles else 0

    def rows_between(self, start: int, end: int) -> float:
        """Rows with times from `start` to `end`, by interpolation between the quantiles.

        >>> StreamStatistics(100, quantiles=(0, 10, 20)).rows_between(5, 10)
        25.0
        """
        return max(0.0, self._rows_before(end) - self._rows_before(start))

    def _rows_before(self, time: int) -> float:
        if len(self.quantiles) < 2 or self.first == self.last:
            return float(self.rows) if self.quantiles and time >= self.first else 0.0
        share = np.interp(time, self.quantiles, np.linspace(0, 1, len(self.quantiles)))
        return self.rows * float(share)

    def time_at(self, share: float) -> int:
        """The time before which a share of the rows lies, by interpolation between the quantiles.

        >>> StreamStatistics(100, quantiles=(0, 10, 20)).time_at(0.75)
        15
        """
        return round(float(np.interp(share, np.linspace(0, 1, len(self.quantiles)), self.quantiles)))

    @property
    def rate(self) -> float:
        """λ, rows per second."""
        seconds = (self.last - self.first) / 1_000_000
        return self.rows / seconds if seconds > 0 else float(self.rows)


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """What a probe does in the index of one condition.

    Attributes:
        touched: Index entries touched for each row within the time bound.
        lookups: Keys that a probe looks up.
        subset: Items that one key of a set index combines.
    """

    touched: float
    lookups: float = 1.0
    subset: int = 1


@dataclass(frozen=True, slots=True)
class PredicateStatistics:
    """One condition between two streams, measured on a sample.

    Attributes:
        selectivity: Share of the pairs within the time bound that meet it.
        indexes: Its index, or one for each size of subset; none if no index serves it.
        width: Elements of its arrays or maps, on average.
    """

    selectivity: float
    indexes: tuple[IndexStatistics, ...] = ()
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of all streams.

    `selectivity[i][l]` is σ_il: matches per comparison when rows of stream i meet rows of stream l
    within their time bound; None where the pair has no predicate. `fanouts[i][j]` is how many partial
    results hop j of direction i makes of one, where a sample told; it knows what pairs cannot tell.
    `predicates` tells of single conditions.
    """

    streams: tuple[StreamStatistics, ...]
    selectivity: tuple[tuple[float | None, ...], ...]
    fanouts: tuple[tuple[float, ...] | None, ...] = ()
    predicates: Mapping[Predicate, PredicateStatistics] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of all streams together."""
        return sum(stream.rows for stream in self.streams)
