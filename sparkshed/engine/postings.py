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
from sparkshed.engine.statistics import HopCounters
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
#: Sums that can get this large may overflow in one order of addition and not in another.
_OVERFLOW = 1e300


class Lookups(NamedTuple):
    """Posting lists of a window: list n, of item `items[n]`, is `places[bounds[n]:bounds[n + 1]]`.

    `weights` go with the places; `heaviest` is the largest finite one, without its sign.
    """

    items: AnyArray
    bounds: Ints
    places: Ints
    weights: Doubles | None
    heaviest: float


class _Reading(NamedTuple):
    """Posting lists to read, each for one partial result of a tile: `owners`, with its own weight.

    Scores are within `slack` of what SQL computes.
    """

    lookups: Lookups
    owners: Ints
    start: Ints
    sizes: Ints
    weights: Doubles | None
    slack: float


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
        counters: HopCounters,
    ) -> None:
        """Take the target's column and the other one; with a predicate they are maps, else sets."""
        self._own, self._other = columns
        self._kind = "sets" if predicate is None else "maps"
        self._least = least
        self._predicate = predicate
        self._stores = stores
        self._limit = spec.chunk
        self._counters = counters
        self._evaluator = Evaluator(spec.ansi, stores[0].codebook)
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
        return Lookups(items.take(first), np.append(first, len(items)), places.take(order), weights, heaviest)

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
            reading = self._look_up(lists, rows.take(tile.picks), tile.window.index(self))
            if not len(reading.sizes):
                continue
            found, scores = self._scores(reading, tile)
            # Not `>=`: a sum that is not finite may still match.
            likely = np.flatnonzero(~(scores < self._least - reading.slack))
            found, scores = likely if found is None else found.take(likely), scores.take(likely)
            sure = np.isfinite(scores) & (scores >= self._least + reading.slack)
            for settled, chosen in ((True, found[sure]), (False, found[~sure])):
                if len(chosen):
                    yield tile.pairs(chosen, settled=settled)

    def _look_up(self, lists: Lists, rows: Ints, index: Lookups) -> _Reading:
        """The posting lists that the given rows of the other stream have to read."""
        numbers, counts = _ranges(lists, rows)
        items = lists.values.take(numbers)
        place = np.minimum(index.items.searchsorted(items), max(len(index.items) - 1, 0))
        known = np.flatnonzero(index.items.take(place) == items) if len(index.items) else numbers[:0]
        found = place.take(known)
        start, sizes = index.bounds.take(found), index.bounds.take(found + 1) - index.bounds.take(found)
        owners = np.repeat(np.arange(len(rows)), counts).take(known)
        if lists.weights is None:
            return _Reading(index, owners, start, sizes, None, 0.0)
        weights = lists.weights.take(numbers.take(known))
        heavy = float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0))
        terms = int(counts.max(initial=0)) + 4
        # Each sum has so many terms, each of at most this size, and each addition rounds.
        reach = terms * heavy * index.heaviest
        slack = terms * (reach * 2.0**-52 + math.ulp(self._least)) if reach < _OVERFLOW else math.inf
        return _Reading(index, owners, start, sizes, weights, slack)

    def _scores(self, reading: _Reading, tile: Tile) -> tuple[Ints | None, AnyArray]:
        """The cells of the tile that postings lead to, and their scores.

        None instead of the cells, and a score for every cell of the tile, if no other can match.
        """
        size = len(tile.picks) * (tile.end - tile.begin)
        some = self._least <= reading.slack
        ends = np.cumsum(reading.sizes)
        if ends[-1] <= self._limit:
            cells, products = self._entries(reading, slice(None), tile)
            if not some and len(cells) > size * _SPARSE:
                return None, np.bincount(cells, products, size)
            return _summed(cells, products)
        scores, met = np.zeros(size), np.zeros(size, np.bool_)
        begin = 0
        while begin < len(ends):
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(ends.searchsorted(done + self._limit, "right")))
            cells, products = self._entries(reading, slice(begin, end), tile)
            with np.errstate(invalid="ignore"):
                scores += np.bincount(cells, products, size)
            met[cells] = True
            begin = end
        if not some:
            return None, scores
        found = np.flatnonzero(met)
        return found, scores.take(found)

    def _entries(self, reading: _Reading, part: slice, tile: Tile) -> tuple[Ints, Doubles | None]:
        """The cells that some of the posting lists lead to, and what each adds to its score."""
        index, sizes = reading.lookups, reading.sizes[part]
        entries = repeat_ranges(reading.start[part], sizes)
        down = np.repeat(reading.owners[part], sizes)
        across = index.places.take(entries) - tile.begin
        products: Doubles | None = None
        if reading.weights is not None and index.weights is not None:
            with np.errstate(all="ignore"):
                products = np.repeat(reading.weights[part], sizes) * index.weights.take(entries)
        inside = self._inside(tile, down, across)
        if inside is not None:
            down, across = down.take(inside), across.take(inside)
            products = None if products is None else products.take(inside)
        self._counters.comparisons += len(down)
        return down * (tile.end - tile.begin) + across, products

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


def _summed(cells: Ints, products: Doubles | None) -> tuple[Ints, AnyArray]:
    """The cells that occur, and the sum of each one's entries."""
    if not len(cells):
        return cells, np.zeros(0)
    order = cells.argsort(kind="stable")
    cells = cells.take(order)
    first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    terms = np.ones(len(cells), np.int64) if products is None else products.take(order)
    with np.errstate(all="ignore"):
        return cells.take(first), np.add.reduceat(terms, first)
