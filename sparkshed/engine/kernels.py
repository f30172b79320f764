"""Kernels that search a sorted index: equality, bands, and the time range itself.

Each reduces a probe to a range of positions in an index, so that the exact number of candidates is
known before any candidate is formed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import AnyArray, Bools, Ints, Vector, both_valid, shift
from sparkshed.engine.codes import mix
from sparkshed.engine.decode import decode
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.index import HashIndex, Needles, SortedIndex, hashes, sorted_by
from sparkshed.engine.partials import Candidates, Partials, distinct
from sparkshed.engine.store import RowStore
from sparkshed.engine.wide import as_double
from sparkshed.engine.windows import BasicWindow
from sparkshed.planner.physical import BandKernel, EqualityKernel
from sparkshed.sql.expr import Col
from sparkshed.sql.predicate import Band, Form
from sparkshed.sql.types import FRACTIONAL, decimal_of


class ScanProbe:
    """Every row in the time range: the index is the window itself."""

    key: Hashable = "scan"
    timed = True
    searched = False
    settled = True

    def index(self, window: BasicWindow) -> SortedIndex:
        """The window is sorted by time already."""
        return SortedIndex(window.times, window.rows)

    def needles(self, partials: Partials, low: Ints, high: Ints) -> Sequence[Needles]:
        """Search for the time range."""
        return (Needles(low, high),)

    def verify(self, candidates: Candidates) -> Bools | None:
        """Nothing to verify."""
        return None


class EqualityProbe:
    """Rows with an equal key. A key of several or NULL-safe columns is hashed, then verified."""

    timed = False
    searched = False

    def __init__(self, kernel: EqualityKernel, target: int, stores: Sequence[RowStore]) -> None:
        """Split each equality in the target's column and the other side's."""
        pairs = [sides(key, target) for key in kernel.keys]
        self._stores = stores
        self._target = target
        self._own = [own for own, _ in pairs]
        self._other = [other for _, other in pairs]
        self._safe = [key.null_safe for key in kernel.keys]
        self._hashed = len(pairs) > 1 or any(self._safe)
        self.settled = not self._hashed
        self.key: Hashable = (
            "equality",
            *((c.column, s) for c, s in zip(self._own, self._safe, strict=True)),
        )

    def index(self, window: BasicWindow) -> SortedIndex:
        """Sort by key; rows with a NULL in an `=` column are left out."""
        keys = self._keys([self._codes(own, window.rows) for own in self._own])
        values, rows = sorted_by(*_only_valid(keys, window.rows))
        return HashIndex(values, rows, self._stores[self._target].times.take(rows))

    def needles(self, partials: Partials, low: Ints, high: Ints) -> Sequence[Needles]:
        """Search for the other side's key, once per distinct row where one stream provides it."""
        streams = {other.stream for other in self._other}
        of: Ints | None = None
        rows = {stream: partials.rows[stream] for stream in streams}
        if len(streams) == 1 and len(partials.rows) > 1:
            stream = next(iter(streams))
            rows[stream], of = distinct(rows[stream])
        keys = self._keys([self._codes(other, rows[other.stream]) for other in self._other])
        return (Needles(keys.values, None, of, keys.valid, hashes=hashes(keys.values)),)

    def verify(self, candidates: Candidates) -> Bools | None:
        """Compare hashed keys column by column."""
        equal = np.ones(candidates.size, np.bool_)
        for own, other in zip(self._own, self._other, strict=True):
            left = self._codes(own, candidates.rows)
            right = self._codes(other, candidates.rows_of(other.stream))
            equal &= _same(left, right)
        return equal

    def _codes(self, column: Col, rows: Ints) -> Vector:
        return self._stores[column.stream].codes(column.column).take(rows)

    def _keys(self, columns: list[Vector]) -> Vector:
        return mix(columns, self._safe) if self._hashed else columns[0]


def _same(left: Vector, right: Vector) -> Bools:
    equal: Bools = left.values == right.values
    if left.valid is None and right.valid is None:
        return equal
    here = np.ones(len(equal), np.bool_) if left.valid is None else left.valid
    there = np.ones(len(equal), np.bool_) if right.valid is None else right.valid
    return (equal & here & there) | ~(here | there)


class BandProbe:
    """Rows whose value lies in a range around each of the other sides' values.

    Exact bands search 64-bit integers. Others search doubles in a range that is widened by more than
    any rounding of the condition, and know a narrower range in which it holds for certain; what lies
    between the two is verified. So are infinities and NaN, for which subtraction is no guide::

                 widened                                    widened
        ────────┤▒▒▒▒▒▒▒├──────── holds for certain ────────┤▒▒▒▒▒▒▒├────────▶ value of the target
              low - slack                                 high + slack
    """

    timed = False
    searched = True
    settled = True

    def __init__(
        self, kernel: BandKernel, target: int, stores: Sequence[RowStore], evaluator: Evaluator
    ) -> None:
        """Take the bands, all of them on the same column of the target."""
        self._ranges = [_Range(band, target) for band in kernel.bands]
        self._own, self._exact = self._ranges[0].own, kernel.bands[0].exact
        self._predicates = kernel.predicates
        self._stores = stores
        self._evaluator = evaluator
        self.key: Hashable = ("band", self._own.column, self._exact)

    def index(self, window: BasicWindow) -> SortedIndex:
        """Sort by value; NULLs are left out and special values go last."""
        values, rows = _only_valid(self._lane(self._own, window.rows), window.rows)
        if self._exact:
            return SortedIndex(*sorted_by(values, rows))
        finite = np.isfinite(values)
        if finite.all():
            return SortedIndex(*sorted_by(values, rows))
        keys, plain = sorted_by(values[finite], rows[finite])
        return SortedIndex(keys, np.concatenate([plain, rows[~finite]]))

    def needles(self, partials: Partials, low: Ints, high: Ints) -> Sequence[Needles]:
        """Search around each of the other sides' values, once per distinct row."""
        return [self._around(range_, partials) for range_ in self._ranges]

    def _around(self, range_: _Range, partials: Partials) -> Needles:
        rows, of = partials.rows[range_.other.stream], None
        if len(partials.rows) > 1:
            rows, of = distinct(rows)
        return range_.needles(self._lane(range_.other, rows), of)

    def verify(self, candidates: Candidates) -> Bools | None:
        """The conditions themselves."""
        passed = np.ones(candidates.size, np.bool_)
        for predicate in self._predicates:
            passed &= self._evaluator.holds(predicate.expr, candidates)
        return passed

    def _lane(self, column: Col, rows: Ints) -> Vector:
        form = _as_whole if self._exact else _as_double
        return self._stores[column.stream].lane(form, column.column).take(rows)


class _Range:
    """`low <= left - right <= high` as a range for the target's column."""

    def __init__(self, band: Band, target: int) -> None:
        self.own, self.other = sides(band, target)
        low, high = _finite(band.low), _finite(band.high)
        # Without a finite bound, or where arithmetic can fail, the condition itself has to decide.
        fractional = {self.own.type, self.other.type} <= set(FRACTIONAL)
        self._certain = fractional and (low, high) == (band.low, band.high)
        if target == band.right.stream:
            low, high = _negated(high), _negated(low)
        self._low, self._high = low, high
        self._exact = band.exact
        narrow = "float" in (self.own.type, self.other.type)
        self._slack, self._least = (2.0**-21, 2.0**-146) if narrow else (2.0**-48, 2.0**-1070)
        self._huge = float(np.finfo(np.float32 if narrow else np.float64).max) / 4
        self._scale = band.scale

    def needles(self, centre: Vector, of: Ints | None) -> Needles:
        """Needles around the given values."""
        return self._whole(centre, of) if self._exact else self._widened(centre, of)

    def _whole(self, centre: Vector, of: Ints | None) -> Needles:
        values, alive = centre
        low = np.full(len(values), np.iinfo(np.int64).min)
        high = np.full(len(values), np.iinfo(np.int64).max)
        if self._low is not None:
            bound = math.ceil(self._low)
            low, clamped = shift(values, bound)
            if clamped is not None and bound > 0:
                alive = both_valid(alive, ~clamped)
        if self._high is not None:
            bound = math.floor(self._high)
            high, clamped = shift(values, bound)
            if clamped is not None and bound < 0:
                alive = both_valid(alive, ~clamped)
        return Needles(low, high, of, alive)

    def _widened(self, centre: Vector, of: Ints | None) -> Needles:
        values, alive = centre
        added = self._scale + abs(float(self._low or 0)) + abs(float(self._high or 0))
        # What is not a number or may overflow has no neighbours: it is compared with every row.
        special = ~(np.abs(values) < self._huge - added)
        with np.errstate(all="ignore"):
            low, inner_low = self._edge(values, self._low, -1.0)
            high, inner_high = self._edge(values, self._high, 1.0)
        every = special if special.any() else None
        return Needles(low, high, of, alive, every, inner=(inner_low, inner_high))

    def _edge(self, values: AnyArray, bound: float | int | None, sign: float) -> tuple[AnyArray, AnyArray]:
        """One end of the range: the farthest value that may match, and the farthest that does."""
        if bound is None:
            outer = np.full(len(values), sign * np.inf)
            return outer, outer if self._certain else -outer
        edge = values + float(bound)
        reach = np.abs(values) + (abs(float(bound)) + self._scale)
        reach *= self._slack
        reach += self._least
        reach *= sign
        outer, inner = edge + reach, edge - reach
        unknown = np.isnan(outer)
        inner = np.where(unknown | (not self._certain), -sign * np.inf, inner)
        return np.where(unknown, sign * np.inf, outer), inner


def _as_whole(array: pa.Array, type_: str) -> Vector:
    values, valid = decode(array, type_)
    return Vector(values.astype(np.int64, copy=False), valid)


def _as_double(array: pa.Array, type_: str) -> Vector:
    values, valid = decode(array, type_)
    doubles = as_double(values)
    decimal = decimal_of(type_)
    return Vector(doubles if decimal is None else doubles / 10.0 ** decimal[1], valid)


def _only_valid(keys: Vector, rows: Ints) -> tuple[AnyArray, Ints]:
    if keys.valid is None:
        return keys.values, rows
    return keys.values[keys.valid], rows[keys.valid]


def sides(form: Form, target: int) -> tuple[Col, Col]:
    """The target's column and the other one."""
    return (form.left, form.right) if form.left.stream == target else (form.right, form.left)


def _finite(bound: float | int | None) -> float | int | None:
    """A bound, or None if it is none: infinite and NaN bounds leave the decision to the checks."""
    return None if bound is None or (isinstance(bound, float) and not math.isfinite(bound)) else bound


def _negated(bound: float | int | None) -> float | int | None:
    return None if bound is None else -bound
