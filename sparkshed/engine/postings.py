"""Sets and weighted sets by their items: what two rows share is added up, item by item.

Each basic window has a posting list per item: the places of the rows that contain it, with their
weights. A probe reads the lists of its own items and adds 1, or the product of the weights, to the
score of every row it meets::

    item    places (weights)             probe {p: 0.5, r: 2}        scores
    p       0 (1.0)   3 (0.2)            p  → 0 += 0.5, 3 += 0.1     0: 0.5
    q       1 (0.4)                                                  3: 2.1
    r       3 (1.0)   7 (0.3)            r  → 3 += 2.0, 7 += 0.6     7: 0.6
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools, Ints, repeat_ranges
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.finding import Pairs, gathered
from sparkshed.engine.lists import Doubles, Lists
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import DirectionCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.tiles import Shape, Tile, tiles
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.expr import Col
from sparkshed.sql.predicate import Predicate

#: Pairs of a tile: their scores stay in the second-level cache.
_CELLS = 1 << 15
#: With fewer entries than this share of the pairs, sorting them beats an array of all scores.
_SPARSE = 1 / 32


class Lookups(NamedTuple):
    """Posting lists of a window: list n, of item `items[n]`, is `places[bounds[n]:bounds[n + 1]]`.

    `weights` go with the places; `heaviest` is the largest finite one, without its sign.
    """

    items: AnyArray
    bounds: Ints
    places: Ints
    weights: Doubles | None
    heaviest: float


class PostingsFinder:
    """Finds rows that share items with the partial result, and enough of them.

    Sums of weights are rounded in another order than SQL does it, so pairs close to the threshold,
    and those whose sum is not finite, are verified.
    """

    def __init__(
        self,
        spec: JoinSpec,
        columns: tuple[Col, Col],
        least: float,
        predicate: Predicate | None,
        stores: Sequence[RowStore],
        counters: DirectionCounters,
    ) -> None:
        """Take the target's column and the other one; with a predicate they are maps, else sets."""
        self._own, self._other = columns
        self._kind = "sets" if predicate is None else "maps"
        self._least = least
        self._predicate = predicate
        self._stores = stores
        self._limit = spec.chunk
        self._counters = counters
        self._evaluator = Evaluator(spec.ansi)
        self.key: Hashable = ("postings", self._own.column, self._kind)

    def index(self, window: BasicWindow) -> Lookups:
        """Sort the window's items; places of one item stay in time order."""
        lists = self._stores[self._own.stream].lists(self._kind, self._own.column)
        numbers, counts = _ranges(lists, window.rows)
        places = np.repeat(np.arange(len(window.rows)), counts)
        items = lists.values.take(numbers)
        order = items.argsort(kind="stable")
        items = items.take(order)
        first = np.flatnonzero(np.append(True, items[1:] != items[:-1])[: len(items)])
        weights = None if lists.weights is None else lists.weights.take(numbers.take(order))
        heaviest = 0.0 if weights is None else float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0))
        return Lookups(
            items.take(first), np.append(first, len(items)), places.take(order), weights, heaviest
        )

    def verify(self, candidates: Candidates) -> Bools | None:
        """The condition itself."""
        return None if self._predicate is None else self._evaluator.holds(self._predicate.expr, candidates)

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Pairs in time that share enough."""
        return gathered(self._tile_by_tile(partials, windows, low, high), self._limit)

    def _tile_by_tile(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        lists = self._stores[self._other.stream].lists(self._kind, self._other.column)
        rows = partials.rows[self._other.stream]
        valid = None if lists.valid is None else lists.valid.take(rows)
        for _, tile in tiles(windows, low, high, valid, Shape(min(_CELLS, self._limit), self._limit)):
            cells, products, slack = self._read(lists, rows.take(tile.picks), tile)
            self._counters.comparisons += len(cells)
            if not len(cells):
                continue
            found, scores = _summed(cells, products, len(tile.picks) * (tile.end - tile.begin))
            # Not `>=`: a sum that is no number may still match.
            likely = np.flatnonzero(~(scores < self._least - slack))
            found, scores = likely if found is None else found.take(likely), scores.take(likely)
            sure = np.isfinite(scores) & (scores >= self._least + slack)
            for settled, chosen in ((True, found[sure]), (False, found[~sure])):
                if len(chosen):
                    yield tile.pairs(chosen, settled=settled)

    def _read(self, lists: Lists, rows: Ints, tile: Tile) -> tuple[Ints, Doubles | None, float]:
        """The cells of the tile that postings lead to, what each adds, and how far rounding reaches."""
        index: Lookups = tile.window.index(self)
        numbers, counts = _ranges(lists, rows)
        items = lists.values.take(numbers)
        lists_found = np.minimum(index.items.searchsorted(items), max(len(index.items) - 1, 0))
        known = np.flatnonzero(index.items.take(lists_found) == items) if len(index.items) else numbers[:0]
        found = lists_found.take(known)
        start, sizes = index.bounds.take(found), index.bounds.take(found + 1) - index.bounds.take(found)
        owners = np.repeat(np.arange(len(rows)), counts).take(known)
        entries = repeat_ranges(start, sizes) if len(sizes) else start
        down, across = np.repeat(owners, sizes), index.places.take(entries) - tile.begin
        inside = self._inside(tile, down, across)
        products: Doubles | None = None
        slack = 0.0
        if lists.weights is not None and index.weights is not None:
            weights = lists.weights.take(numbers.take(known))
            with np.errstate(all="ignore"):
                products = np.repeat(weights, sizes) * index.weights.take(entries)
            products = products if inside is None else products.take(inside)
            heavy = float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0))
            terms = int(counts.max(initial=0)) + 4
            slack = terms * terms * 2.0**-52 * heavy * index.heaviest + math.ulp(self._least)
        if inside is not None:
            down, across = down.take(inside), across.take(inside)
        return down * (tile.end - tile.begin) + across, products, slack

    def _inside(self, tile: Tile, down: Ints, across: Ints) -> Ints | None:
        """Which entries are within their probe's time range; None if all are."""
        if tile.start is not None and tile.stop is not None:
            return np.flatnonzero((across >= tile.start.take(down)) & (across < tile.stop.take(down)))
        if tile.end - tile.begin == len(tile.window.rows):
            return None
        return np.flatnonzero((across >= 0) & (across < tile.end - tile.begin))


def _ranges(lists: Lists, rows: Ints) -> tuple[Ints, Ints]:
    """Numbers of all values of the rows, and how many each row has."""
    start = lists.offsets.take(rows)
    counts = lists.offsets.take(rows + 1) - start
    return (repeat_ranges(start, counts) if len(counts) else start), counts


def _summed(cells: Ints, products: Doubles | None, size: int) -> tuple[Ints | None, AnyArray]:
    """The cells that occur, None for all there are, and the sum of each one's entries."""
    if len(cells) > size * _SPARSE:
        return None, np.bincount(cells, products, size)
    order = cells.argsort(kind="stable")
    cells = cells.take(order)
    first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    terms = np.ones(len(cells), np.int64) if products is None else products.take(order)
    return cells.take(first), np.add.reduceat(terms, first)
