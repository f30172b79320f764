"""Vectors: a matrix product decides most pairs, and exact arithmetic those near the threshold."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools, Ints
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.finding import Pairs, gathered
from sparkshed.engine.kernels import sides
from sparkshed.engine.lists import Lists
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.tiles import Shape, Tile, tiles
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.planner.physical import VectorKernel

#: Rows of a window that one product takes.
_ACROSS = 1024
#: Elements of probing vectors that are prepared at a time.
_PREPARED = 1 << 21

_KINDS = {
    "inner_product": "product",
    "dot": "product",
    "cosine_similarity": "cosine",
    "l2_distance": "distance",
    "squared_distance": "distance",
}


class Factors(NamedTuple):
    """Vectors ready for a product: `matrix` holds the rows at `places`, `norms` their lengths.

    Vectors at the places `odd` (another dimension, NULL or NaN inside, huge, without a direction) are
    no use in a product; exact arithmetic has to look at them. Rows without a vector are in neither.
    """

    matrix: AnyArray
    norms: AnyArray
    places: Ints
    odd: Ints

    def appended(self, other: Factors, start: int) -> Factors | None:
        """Both in one, the other's places from `start` on; None if their dimensions differ."""
        if self.matrix.shape[1] != other.matrix.shape[1]:
            return None
        return Factors(
            np.concatenate([self.matrix, other.matrix]),
            np.concatenate([self.norms, other.norms]),
            np.concatenate([self.places, other.places + start]),
            np.concatenate([self.odd, other.odd + start]),
        )


class Measure:
    """Turns a condition on two vectors into `score >= bound`, the score being an inner product.

    ==================  ===========================================================
    cosine              unit vectors
    inner product, dot  the vectors as they are
    distance            `|a - b|² = (-2a, |a|², 1) · (b, 1, |b|²)`
    ==================  ===========================================================

    For `<=` one side is negated. Rounding of the product, and of the exact measure, stays within a
    slack: pairs above `bound + slack` match, pairs below `bound - slack` do not.
    """

    def __init__(self, kernel: VectorKernel) -> None:
        """Read the condition."""
        form = kernel.similarity
        self.kind = _KINDS[form.measure]
        double = form.left.type == "array<double>"
        self._dtype = np.dtype(np.float64 if double else np.float32)
        self._epsilon = 2.0**-52 if double else 2.0**-23
        self._huge = 1e150 if double else 1e18
        self._tiny = 1e-300 if double else 1e-36
        self._downward = form.op in ("<=", "<")
        bound = form.threshold
        self._decides = math.isfinite(bound)
        if form.measure == "l2_distance":
            self._decides = self._decides and bound >= 0
            bound *= bound
        self._bound = -bound if self._downward else bound
        # The exact measure is rounded to single precision, and the distance squared after that.
        self._relative = 2.0**-21 * abs(bound) if not double else 2.0**-50 * abs(bound)

    def factors(self, lists: Lists, rows: Ints, dimension: int, *, probing: bool) -> Factors:
        """The vectors of the given rows, as the probing or as the probed side of the product."""
        offsets = lists.offsets.take(rows)
        there = np.ones(len(rows), np.bool_) if lists.valid is None else lists.valid.take(rows)
        fits = (lists.offsets.take(rows + 1) - offsets == dimension) & there
        if lists.holes is not None:
            fits &= ~lists.holes.take(rows)
        places = np.flatnonzero(fits)
        elements = offsets.take(places)[:, None] + np.arange(dimension)
        vectors = lists.values.take(elements).astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        usable = norms < self._huge
        if self.kind == "cosine":
            usable &= norms > self._tiny
        if not usable.all():
            fits[places[~usable]] = False
            places, vectors, norms = places[usable], vectors[usable], norms[usable]
        matrix = self._side(vectors, norms, probing=probing)
        if probing and self._downward:
            np.negative(matrix, out=matrix)
        return Factors(matrix, norms, places, np.flatnonzero(there & ~fits))

    def _side(self, vectors: AnyArray, norms: AnyArray, *, probing: bool) -> AnyArray:
        if self.kind == "product":
            return vectors.astype(self._dtype)
        if self.kind == "cosine":
            return (vectors / norms[:, None]).astype(self._dtype)
        count, dimension = vectors.shape
        matrix = np.empty((count, dimension + 2), self._dtype)
        matrix[:, :dimension] = -2.0 * vectors if probing else vectors
        matrix[:, dimension] = norms**2 if probing else 1.0
        matrix[:, dimension + 1] = 1.0 if probing else norms**2
        return matrix

    def limits(self, dimension: int, probing: AnyArray, probed: AnyArray) -> tuple[Any, Any]:
        """Scores from the first on may match, and from the second on do; in the type of the scores."""
        if not self._decides:
            return -math.inf, math.inf
        a, b = float(probing.max(initial=0.0)), float(probed.max(initial=0.0))
        reach = {"cosine": 1.0, "product": a * b, "distance": (a + b) ** 2}[self.kind]
        slack = 2.0 * (dimension + 8) * self._epsilon * reach + self._relative + self._tiny
        with np.errstate(over="ignore"):
            return self._dtype.type(self._bound - slack), self._dtype.type(self._bound + slack)


class VectorFinder:
    """Finds pairs of vectors that are close, by multiplying blocks of them."""

    def __init__(
        self,
        kernel: VectorKernel,
        target: int,
        stores: Sequence[RowStore],
        limit: int,
        counters: HopCounters,
        evaluator: Evaluator,
    ) -> None:
        """Form at most `limit` candidates at a time; every row in the time range counts as touched."""
        self._own, self._other = sides(kernel.similarity, target)
        self._stores = stores
        self._predicate = kernel.predicate
        self._measure = Measure(kernel)
        self._limit = limit
        self._counters = counters
        self._evaluator = evaluator
        self.key: Hashable = ("vectors", self._own.column, self._measure.kind)

    def index(self, window: BasicWindow) -> Factors:
        """The window's vectors of the most frequent dimension as one matrix."""
        lists = self._stores[self._own.stream].lists("vectors", self._own.column)
        lengths = lists.offsets.take(window.rows + 1) - lists.offsets.take(window.rows)
        if lists.valid is not None:
            lengths = lengths[lists.valid.take(window.rows)]
        dimension = int(np.bincount(lengths).argmax()) if len(lengths) else 0
        return self._measure.factors(lists, window.rows, dimension, probing=False)

    def verify(self, candidates: Candidates) -> Bools | None:
        """Exact arithmetic."""
        return self._evaluator.holds(self._predicate.expr, candidates)

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Candidates: settled ones, and those that exact arithmetic has to decide."""
        lists = self._stores[self._other.stream].lists("vectors", self._other.column)
        rows = partials.rows[self._other.stream]
        lengths = lists.offsets.take(rows + 1) - lists.offsets.take(rows)
        valid = None if lists.valid is None else lists.valid.take(rows)
        for dimension in np.unique(lengths if valid is None else lengths[valid]).tolist():
            same = np.flatnonzero(lengths == dimension if valid is None else (lengths == dimension) & valid)
            step = max(1, _PREPARED // max(dimension, 1))
            for begin in range(0, len(same), step):
                chosen = same[begin : begin + step]
                factors = self._measure.factors(lists, rows.take(chosen), dimension, probing=True)
                found = self._multiply(chosen, factors, dimension, windows, low, high)
                yield from gathered(found, self._limit)

    def _multiply(
        self, chosen: Ints, factors: Factors, dimension: int, windows: Windows, low: Ints, high: Ints
    ) -> Iterator[Pairs]:
        shape = Shape(self._limit, min(_ACROSS, self._limit))
        regular = chosen.take(factors.places)
        for numbers, matrix in ((regular, factors.matrix), (chosen.take(factors.odd), None)):
            norms = factors.norms
            for count, tile in tiles(windows, low.take(numbers), high.take(numbers), None, shape):
                self._counters.comparisons += count
                within = tile.picks
                probed = self._slice(tile)
                tile = tile._replace(picks=numbers.take(within))
                if matrix is None or probed.matrix.shape[1] != matrix.shape[1]:
                    yield from self._undecided(tile, np.arange(tile.end - tile.begin))
                    continue
                scores = np.matmul(matrix.take(within, axis=0), probed.matrix.T)
                lower, upper = self._measure.limits(dimension, norms.take(within), probed.norms)
                yield from self._decided(tile, probed.places, scores, lower, upper)
                if len(probed.odd):
                    yield from self._undecided(tile, probed.odd)

    def _slice(self, tile: Tile) -> Factors:
        """The window's vectors within the tile, with places counted from its left side."""
        whole: Factors = tile.window.index(self)
        a, b = whole.places.searchsorted([tile.begin, tile.end]).tolist()
        c, d = whole.odd.searchsorted([tile.begin, tile.end]).tolist()
        return Factors(
            whole.matrix[a:b], whole.norms[a:b], whole.places[a:b] - tile.begin, whole.odd[c:d] - tile.begin
        )

    def _decided(self, tile: Tile, places: Ints, scores: AnyArray, lower: Any, upper: Any) -> Iterator[Pairs]:
        likely = scores >= lower
        outside = tile.outside()
        if outside is not None:
            likely &= ~outside.take(places, axis=1)
        found = np.flatnonzero(likely)
        if not len(found):
            return
        sure = scores.ravel().take(found) >= upper
        down, across = np.divmod(found, max(len(places), 1))
        cells = down * (tile.end - tile.begin) + places.take(across)
        for settled, part in ((True, cells[sure]), (False, cells[~sure])):
            if len(part):
                yield tile.pairs(part, settled=settled)

    def _undecided(self, tile: Tile, across: Ints) -> Iterator[Pairs]:
        """Every pair of the tile in the given columns."""
        valid = self._stores[self._own.stream].lists("vectors", self._own.column).valid
        if valid is not None:
            across = across[valid.take(tile.window.rows[tile.begin : tile.end].take(across))]
        inside = np.ones((len(tile.picks), len(across)), np.bool_)
        outside = tile.outside()
        if outside is not None:
            inside = ~outside.take(across, axis=1)
        down, places = np.nonzero(inside)
        if len(down):
            yield tile.pairs(down * (tile.end - tile.begin) + across.take(places))
