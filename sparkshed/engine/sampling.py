"""Estimates from a sample: join it for real, and count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import AnyArray, shift
from sparkshed.engine.decode import decode_times
from sparkshed.engine.errors import EngineError
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.sets import LARGEST_SUBSET, SetRule
from sparkshed.planner.physical import (
    BandKernel,
    Direction,
    EqualityKernel,
    Hop,
    JoinSpec,
    Kernel,
    ScanKernel,
    SetKernel,
    StreamExec,
    VectorKernel,
    WeightedKernel,
)
from sparkshed.planner.statistics import IndexStatistics, PredicateStatistics
from sparkshed.sql.expr import Apply, Col
from sparkshed.sql.predicate import Band, Equality, Overlap, Predicate, Similarity, WeightedOverlap

_BASIC_WINDOWS = 64
_SAMPLE_CHUNK = 1 << 14
_FEWEST_PARTIALS = 20
_MOST_RESULTS = 500_000

#: Which kernel to sample with when several conditions offer one.
_PREFERRED = (EqualityKernel, SetKernel, BandKernel, WeightedKernel, VectorKernel, ScanKernel)


@dataclass(frozen=True)
class SampledPair:
    """Two sampled streams, whose conditions are measured by joining the sample for real."""

    streams: tuple[StreamExec, StreamExec]
    bounds: tuple[tuple[int | None, ...], ...]
    tables: tuple[pa.Table, pa.Table]
    ansi: bool

    @staticmethod
    def of(
        streams: Sequence[StreamExec],
        bounds: Sequence[Sequence[int | None]],
        pair: tuple[int, int],
        sample: Sequence[pa.Table],
        *,
        ansi: bool,
    ) -> SampledPair:
        """Streams `pair` of the sample, as streams 0 and 1."""
        i, k = pair
        return SampledPair(
            (streams[i], streams[k]),
            ((0, bounds[i][k]), (bounds[k][i], 0)),
            (sample[i], sample[k]),
            ansi,
        )

    def measure(self, predicate: Predicate) -> PredicateStatistics:
        """Selectivity of one condition, and what its index touches."""
        given = _given(predicate)
        if given is not None:
            return PredicateStatistics(given)
        pairs = self.pairs
        tried = [(kernel, *self._join(kernel, checks)) for kernel, checks in kernels_of(predicate)]
        _, results, _ = tried[0]
        indexes = tuple(
            IndexStatistics(max(touched, 0.5) / pairs, self._lookups(kernel), _subset(kernel))
            for kernel, _, touched in tried
            if not isinstance(kernel, (ScanKernel, VectorKernel))
        )
        return PredicateStatistics(_share(results, pairs), indexes, self._width(predicate))

    def selectivity(self, predicates: Sequence[Predicate]) -> float:
        """σ: the share of pairs within the time bound that meet all conditions."""
        rest = [predicate for predicate in predicates if _given(predicate) is None]
        given = math.prod(_given(predicate) or 1.0 for predicate in predicates)
        if not rest:
            return given
        own = min(rest, key=lambda predicate: _PREFERRED.index(type(kernels_of(predicate)[-1][0])))
        kernel, checks = kernels_of(own)[-1]
        results, _ = self._join(kernel, (*checks, *(predicate for predicate in rest if predicate is not own)))
        return given * _share(results, self.pairs)

    @property
    def pairs(self) -> int:
        """Pairs of sampled rows within the time bound."""
        first, second = (
            np.sort(decode_times(times.drop_null(), stream.types[stream.time]))
            for stream, table in zip(self.streams, self.tables, strict=True)
            for times in [_one(table.column(stream.time))]
        )
        past, future = self.bounds[0][1], self.bounds[1][0]
        low = 0 if past is None else second.searchsorted(shift(first, -past)[0])
        high = len(second) if future is None else second.searchsorted(shift(first, future)[0], "right")
        return max(1, int(np.maximum(high - low + np.zeros(len(first), np.int64), 0).sum()))

    def _join(self, kernel: Kernel, checks: tuple[Predicate, ...]) -> tuple[float, float]:
        """Results and entries touched.

        A condition that fails on the sample counts as true: the error belongs to the run, not to planning.
        """
        longest = max((abs(b) for row in self.bounds for b in row if b is not None), default=1)
        spec = JoinSpec(
            streams=self.streams,
            bounds=self.bounds,
            directions=(Direction(0, (Hop(1, kernel, checks),)), Direction(1, (Hop(0, kernel, checks),))),
            basic=max(1, longest // _BASIC_WINDOWS, 1_000_000),
            output=(),
            ansi=self.ansi,
        )
        operator = JoinOperator(spec)
        try:
            for batch in ({1: self.tables[1]}, {0: self.tables[0]}):
                for _ in operator.process(batch):
                    pass
        except EngineError:
            return self.pairs, self.pairs
        counters = operator.statistics.directions[0]
        return counters.results, counters.comparisons

    def _lookups(self, kernel: Kernel) -> float:
        """Keys that one row of a set or map is looked up by."""
        if not isinstance(kernel, (SetKernel, WeightedKernel)):
            return 1.0
        lengths = self._lengths(kernel.overlap.left)
        if isinstance(kernel, WeightedKernel) or kernel.subset == 1:
            return float(lengths.mean()) if len(lengths) else 1.0
        rule = SetRule(kernel.overlap.least, kernel.subset)
        if not len(lengths):
            return 1.0
        different, rows = np.unique(lengths, return_counts=True)
        counts = np.array([rule.count(int(length)) for length in different])
        return float((counts * rows).sum() / len(lengths))

    def _width(self, predicate: Predicate) -> float:
        if not isinstance(predicate.form, (Overlap, WeightedOverlap, Similarity)):
            return 0.0
        lengths = self._lengths(predicate.form.left)
        return float(lengths.mean()) if len(lengths) else 0.0

    def _lengths(self, column: Col) -> AnyArray:
        array = _one(self.tables[column.stream].column(column.column))
        if pa.types.is_map(array.type):
            return np.diff(array.offsets.to_numpy(zero_copy_only=False))
        lengths: AnyArray = pc.list_value_length(array).drop_null().to_numpy(zero_copy_only=False)
        return lengths


def kernels_of(predicate: Predicate) -> list[tuple[Kernel, tuple[Predicate, ...]]]:
    """The kernels that use one condition, with the check that each leaves."""
    form = predicate.form
    if isinstance(form, Equality):
        return [(EqualityKernel((form,)), ())]
    if isinstance(form, Band):
        return [(BandKernel((predicate,)), ())]
    if isinstance(form, Overlap):
        return [(SetKernel(form, size), ()) for size in range(1, min(form.least, LARGEST_SUBSET) + 1)]
    if isinstance(form, WeightedOverlap):
        return [(WeightedKernel(form, predicate), ())]
    if isinstance(form, Similarity):
        return [(VectorKernel(form, predicate), ())]
    return [(ScanKernel(), (predicate,))]


def _given(predicate: Predicate) -> float | None:
    return predicate.expr.predicate.selectivity if isinstance(predicate.expr, Apply) else None


def _subset(kernel: Kernel) -> int:
    return kernel.subset if isinstance(kernel, SetKernel) else 1


def _share(results: float, pairs: int) -> float:
    """Half a match is assumed where none was seen, so that a plan never takes a stream for empty."""
    return (results or 0.5) / pairs


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def hop_fanouts(
    spec: JoinSpec, origin: int, sample: Sequence[pa.Table], shares: Sequence[float]
) -> tuple[float, ...] | None:
    """Rows that each hop of a direction makes of one, measured by joining the sample.

    `shares[i]` is the share of stream i's rows that the sample holds, where it holds any. None when
    a hop found too little to tell, a condition fails, or the sample's join is too large to be worth it.
    """
    operator = JoinOperator(replace(spec, output=(), chunk=_SAMPLE_CHUNK))
    others = {number: table for number, table in enumerate(sample) if number != origin}
    for _ in operator.process(others):
        pass
    counters = operator.statistics.directions[origin]
    try:
        for _ in operator.process({origin: sample[origin]}):
            if counters.results > _MOST_RESULTS:
                return None
    except EngineError:
        return None
    fanouts, before = [], sample[origin].num_rows
    for hop, found in zip(spec.directions[origin].hops, counters.partials, strict=True):
        if found < _FEWEST_PARTIALS:
            return None
        fanouts.append(found / before / shares[hop.target])
        before = found
    return tuple(fanouts)
