"""What shredded rows teach: per direction, hop and slice, what is touched and what is found.

A tally is a sum, so tallies of batches and of hosts add up. Old counts decay, so that a changed lag or
rate is learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
#: The streams that are joined already, and the one that is probed.
HopKey = tuple[frozenset[int], int]


@dataclass(slots=True)
class HopTally:
    """What partial results met when they probed one window in full, slice by slice.

    Attributes:
        probes: Partial results that probed.
        searches: Work units of searches, which do not depend on the slices.
        pairs: Rows within the time bound.
        touched: All other work units.
        partials: Partial results found.
        sizes: Rows within the time bound that a probe meets now, where counts are from windows that were not
            as full; None if counts tell that themselves.
    """

    probes: float
    searches: float
    pairs: Floats
    touched: Floats
    partials: Floats
    sizes: Floats | None = None

    @staticmethod
    def empty(slices: int) -> HopTally:
        """Nothing met yet."""
        return HopTally(0.0, 0.0, np.zeros(slices), np.zeros(slices), np.zeros(slices))

    def decay(self, factor: float) -> None:
        """Let what was learned so far count less."""
        self.probes *= factor
        self.searches *= factor
        for counts in (self.pairs, self.touched, self.partials):
            counts *= factor

    def per_probe(self, counts: Floats) -> Floats:
        """What one probe meets now of `touched` or `partials`: as much for each row in a slice as ever."""
        mean = counts / max(self.probes, 1e-12)
        if self.sizes is None:
            return mean
        return np.divide(counts * self.sizes, self.pairs, out=mean, where=self.pairs > 0)

    def add(self, other: HopTally) -> None:
        """Count what another tally met, too."""
        self.probes += other.probes
        self.searches += other.searches
        self.pairs += other.pairs
        self.touched += other.touched
        self.partials += other.partials
        if other.sizes is not None:
            self.sizes = other.sizes.copy()


@dataclass(slots=True)
class DirectionTally:
    """What is known of the rows of one stream.

    Attributes:
        rows: Rows that probed, in whatever way.
        learned: Rows that were joined in full, each counted as the share of its first window it saw.
        results: Their results.
        lags: For each other stream, these results by slice: the pairwise histograms.
        hops: What their hops met.
        work: Work units of all rows.
        sifted: Partial results of first hops that went no further; a part of what hops met.
        joined: Rows that entered the windows, where that is counted.
        yields: Where rows are judged by the number of their matches: rows, and matches, by bins of that
            number.
        harvested: For rows that harvest, with the dear and with the cheap setting, and for those that probe
            everything to use up a budget: how many there are, and how many partial results their first hop
            finds.
    """

    rows: float = 0.0
    learned: float = 0.0
    results: float = 0.0
    work: float = 0.0
    sifted: float = 0.0
    lags: dict[int, Floats] = field(default_factory=dict)
    hops: dict[HopKey, HopTally] = field(default_factory=dict)
    harvested: Floats = field(default_factory=lambda: np.zeros((3, 2)))
    joined: float = 0.0
    yields: Floats = field(default_factory=lambda: np.zeros((2, 0)))

    def hop(self, key: HopKey, slices: int) -> HopTally:
        """The tally of one hop, made when first asked for."""
        if key not in self.hops:
            self.hops[key] = HopTally.empty(slices)
        return self.hops[key]

    def lag(self, target: int, slices: int) -> Floats:
        """The histogram of one other stream, made when first asked for."""
        if target not in self.lags:
            self.lags[target] = np.zeros(slices)
        return self.lags[target]

    def decay(self, factor: float) -> None:
        """Let what was learned so far count less."""
        self.rows *= factor
        self.learned *= factor
        self.results *= factor
        self.work *= factor
        self.sifted *= factor
        self.harvested *= factor
        self.joined *= factor
        self.yields *= factor
        for counts in self.lags.values():
            counts *= factor
        for hop in self.hops.values():
            hop.decay(factor)

    def add(self, other: DirectionTally) -> None:
        """Count what another tally met, too."""
        self.rows += other.rows
        self.learned += other.learned
        self.results += other.results
        self.work += other.work
        self.sifted += other.sifted
        self.harvested += other.harvested
        self.joined += other.joined
        if other.yields.size:
            self.yields = self.yields + other.yields if self.yields.size else other.yields.copy()
        for target, counts in other.lags.items():
            self.lag(target, len(counts))[:] += counts
        for key, hop in other.hops.items():
            self.hop(key, len(hop.pairs)).add(hop)

    def selectivity(self, origin: int, target: int) -> float | None:
        """σ_il: matches per comparison when new rows of S_i probe W_l; None if they never did."""
        hop = self.hops.get((frozenset([origin]), target))
        pairs = 0.0 if hop is None else float(hop.pairs.sum())
        # Half a match is assumed where none was seen, so that a stream is never taken for empty.
        return None if hop is None or pairs <= 0 else max(0.5, float(hop.partials.sum())) / pairs


@dataclass(slots=True)
class Tally:
    """The tallies of all directions, and the lags of each stream against the first one (paper mode)."""

    directions: list[DirectionTally]
    streams: list[Floats]

    @staticmethod
    def empty(streams: int, buckets: int) -> Tally:
        """Nothing learned yet; histograms reach `buckets` slices to each side."""
        return Tally(
            [DirectionTally() for _ in range(streams)], [np.zeros(2 * buckets) for _ in range(streams)]
        )

    def decay(self, factor: float) -> None:
        """Let what was learned so far count less."""
        for direction in self.directions:
            direction.decay(factor)
        for counts in self.streams:
            counts *= factor

    def add(self, other: Tally) -> None:
        """Count what another tally met, too."""
        for own, theirs in zip(self.directions, other.directions, strict=True):
            own.add(theirs)
        for counts, more in zip(self.streams, other.streams, strict=True):
            counts += more

    def copy(self) -> Tally:
        """A tally of its own with the same counts."""
        own = Tally.empty(len(self.directions), len(self.streams[0]) // 2)
        own.add(self)
        return own

    @staticmethod
    def sum(tallies: Iterable[Tally]) -> Tally | None:
        """All tallies in one; None if there is none."""
        total: Tally | None = None
        for tally in tallies:
            if total is None:
                total = tally
            else:
                total.add(tally)
        return total
