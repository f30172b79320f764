"""From the kernel of a plan to the finder that runs it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkshed.engine.finding import Finder
from sparkshed.engine.kernels import BandProbe, EqualityProbe, ScanProbe
from sparkshed.engine.ranges import RangeFinder
from sparkshed.engine.statistics import DirectionCounters
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import BandKernel, EqualityKernel, Hop, JoinSpec


def bind(spec: JoinSpec, hop: Hop, stores: Sequence[RowStore], counters: DirectionCounters) -> Finder:
    """The finder of a hop's candidates."""
    if isinstance(hop.kernel, EqualityKernel):
        return RangeFinder(EqualityProbe(hop.kernel, hop.target, stores), spec.chunk, counters)
    if isinstance(hop.kernel, BandKernel):
        return RangeFinder(BandProbe(hop.kernel.band, hop.target, stores), spec.chunk, counters)
    return RangeFinder(ScanProbe(), spec.chunk, counters)
