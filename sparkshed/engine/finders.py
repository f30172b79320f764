"""From the kernel of a plan to the finder that runs it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.finding import Finder
from sparkshed.engine.kernels import BandProbe, EqualityProbe, ScanProbe, sides
from sparkshed.engine.ranges import RangeFinder
from sparkshed.engine.sets import SetFinder, SetRule
from sparkshed.engine.statistics import DirectionCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.vectors import VectorFinder
from sparkshed.planner.physical import (
    BandKernel,
    EqualityKernel,
    Hop,
    JoinSpec,
    SetKernel,
    VectorKernel,
    WeightedKernel,
)


def bind(spec: JoinSpec, hop: Hop, stores: Sequence[RowStore], counters: DirectionCounters) -> Finder:
    """The finder of a hop's candidates."""
    kernel, target, limit = hop.kernel, hop.target, spec.chunk
    if isinstance(kernel, EqualityKernel):
        return RangeFinder(EqualityProbe(kernel, target, stores), limit, counters)
    if isinstance(kernel, BandKernel):
        return RangeFinder(BandProbe(kernel, target, stores, Evaluator(spec.ansi)), limit, counters)
    if isinstance(kernel, SetKernel):
        rule = SetRule(kernel.overlap.least, kernel.subset)
        return SetFinder(sides(kernel.overlap, target), "sets", rule, stores, limit, counters)
    if isinstance(kernel, WeightedKernel):
        return SetFinder(sides(kernel.overlap, target), "keys", SetRule(1, 1), stores, limit, counters)
    if isinstance(kernel, VectorKernel):
        return VectorFinder(kernel, target, stores, limit, counters, Evaluator(spec.ansi))
    return RangeFinder(ScanProbe(), limit, counters)
