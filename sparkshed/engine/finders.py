"""From the kernel of a plan to the finder that runs it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkshed.engine.blocks import is_gridable
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.finding import Finder
from sparkshed.engine.grids import GridFinder
from sparkshed.engine.kernels import BandProbe, EqualityProbe, ScanProbe, sides
from sparkshed.engine.postings import PostingsFinder
from sparkshed.engine.ranges import RangeFinder
from sparkshed.engine.sets import SetFinder, SetRule
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.vectors import VectorFinder
from sparkshed.planner.physical import (
    BandKernel,
    EqualityKernel,
    Hop,
    JoinSpec,
    ScanKernel,
    SetKernel,
    VectorKernel,
    WeightedKernel,
)
from sparkshed.sql.predicate import Predicate


def bind(
    spec: JoinSpec, hop: Hop, stores: Sequence[RowStore], counters: HopCounters
) -> tuple[Finder, tuple[Predicate, ...]]:
    """The finder of a hop's candidates, and the conditions that it leaves to be checked."""
    if isinstance(hop.kernel, ScanKernel):
        for check in hop.checks:
            if is_gridable(check.expr):
                rest = tuple(other for other in hop.checks if other is not check)
                return GridFinder(spec, hop.target, check, stores, counters), rest
    return _indexed(spec, hop, stores, counters), hop.checks


def _indexed(spec: JoinSpec, hop: Hop, stores: Sequence[RowStore], counters: HopCounters) -> Finder:
    kernel, target, limit = hop.kernel, hop.target, spec.chunk
    evaluator = Evaluator(spec.ansi, stores[target].codebook)
    if isinstance(kernel, EqualityKernel):
        return RangeFinder(EqualityProbe(kernel, target, stores), limit, counters)
    if isinstance(kernel, BandKernel):
        return RangeFinder(BandProbe(kernel, target, stores, evaluator), limit, counters)
    if isinstance(kernel, SetKernel):
        columns, least = sides(kernel.overlap, target), kernel.overlap.least
        if kernel.subset == 1:
            return PostingsFinder(spec, columns, least, None, stores, counters)
        return SetFinder(columns, SetRule(least, kernel.subset), stores, limit, counters)
    if isinstance(kernel, WeightedKernel):
        maps = kernel.overlap
        return PostingsFinder(spec, sides(maps, target), maps.least, kernel.predicate, stores, counters)
    if isinstance(kernel, VectorKernel):
        return VectorFinder(kernel, target, stores, limit, counters, evaluator)
    return RangeFinder(ScanProbe(), limit, counters)
