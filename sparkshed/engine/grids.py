"""Conditions that no index serves: decided on whole grids of pairs that stay in cache."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from sparkshed.engine.arrays import Bools, Ints, Vector
from sparkshed.engine.blocks import GridEvaluator, GridFrame
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.finding import Pairs, gathered
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.programs import Program
from sparkshed.engine.statistics import HopCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.tiles import Shape, Tile, tiles
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.expr import Col, columns_of
from sparkshed.sql.predicate import Predicate

#: Columns of partial results and of windows, ready to compute with, while one chunk is probed.
_Ready = dict[tuple[BasicWindow | int, int], Vector]
#: Pairs of a tile: what an expression computes for them stays in the second-level cache.
_CELLS = 1 << 17


class GridFinder:
    """Compares every row in the time range, a tile at a time.

    SQL evaluates a condition only for pairs in time; a tile has others beside them. Where the condition
    fails on a tile, its pairs in time are evaluated one by one, and only these can make it fail.
    """

    def __init__(
        self,
        spec: JoinSpec,
        target: int,
        predicate: Predicate,
        stores: Sequence[RowStore],
        counters: HopCounters,
    ) -> None:
        """Decide one condition; every row in the time range counts as touched."""
        self._target = target
        self._predicate = predicate
        self._stores = stores
        self._counters = counters
        self._limit = spec.chunk
        self._evaluator = Evaluator(spec.ansi, stores[target].codebook)
        self._on_grid = GridEvaluator(spec.ansi, stores[target].codebook)
        self._program = Program.of(predicate.expr)
        own = {column.column for column in columns_of(predicate.expr) if column.stream == target}
        self._values = {column: _Values(stores[target], column) for column in own}

    def verify(self, candidates: Candidates) -> Bools | None:
        """The condition, for pairs in time only."""
        return self._evaluator.holds(self._predicate.expr, candidates)

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Pairs in time that meet the condition."""
        return gathered(self._tile_by_tile(partials, windows, low, high), self._limit)

    def _tile_by_tile(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        cells = min(_CELLS, self._limit)
        ready: _Ready = {}
        for count, tile in tiles(windows, low, high, None, Shape(cells, cells)):
            self._counters.comparisons += count
            inside = tile.outside()
            if inside is not None:
                np.logical_not(inside, out=inside)
            settled = True
            try:
                passed = self._holds(partials, tile, ready)
                passed = passed if inside is None else passed & inside
            except EvaluationError:
                settled = False
                passed = _everywhere(tile) if inside is None else inside
            found = np.flatnonzero(passed)
            if len(found):
                yield tile.pairs(found, settled=settled)

    def _holds(self, partials: Partials, tile: Tile, ready: _Ready) -> Bools:
        shape = (len(tile.picks), tile.end - tile.begin)

        def read(column: Col) -> Vector:
            return self._vector(column, partials, tile, ready)

        if self._program is not None:
            vectors = [read(column) for column in self._program.columns]
            if all(vector.valid is None for vector in vectors):
                words = [self._evaluator.literal(lit).values for lit in self._program.words]
                return self._program.run([vector.values for vector in vectors], shape, words)
        return self._on_grid.on_grid(self._predicate.expr, GridFrame(self._target, shape, read))

    def _vector(self, column: Col, partials: Partials, tile: Tile, ready: _Ready) -> Vector:
        """A column of the partial results down the tile, or of the target's rows across it."""
        own = column.stream == self._target
        key = (tile.window if own else column.stream, column.column)
        if key not in ready:
            whole: Vector = (
                tile.window.index(self._values[column.column])
                if own
                else partials.column(column.stream, column.column)
            )
            ready[key] = self._evaluator.ready(whole, column.type)
        values, valid = ready[key]
        if own:
            values = values[tile.begin : tile.end]
            valid = None if valid is None else valid[tile.begin : tile.end]
        else:
            values, valid = ready[key].take(tile.picks)
        place = (1, -1) if own else (-1, 1)
        return Vector(values.reshape(place), None if valid is None else valid.reshape(place))


def _everywhere(tile: Tile) -> Bools:
    return np.ones((len(tile.picks), tile.end - tile.begin), np.bool_)


class _Values:
    """A column of a window's rows, next to each other; words as codes, since ranks do not last."""

    def __init__(self, store: RowStore, column: int) -> None:
        self._store = store
        self._column = column
        self.key: Hashable = ("values", column)

    def index(self, window: BasicWindow) -> Vector:
        return self._store.values(self._column).take(window.rows)
