"""Evaluation on a grid: every partial result of a block against every row of the target.

A grid has partial results down and rows of the target across. A column is a column vector or a row
vector, so nothing is copied per pair, what depends on one side only is computed once per side, and a
grid of moderate size stays in cache. In exchange no operand is skipped for the pairs that do not need
it, so in ANSI mode an expression may fail on a grid although SQL would not fail. Where it does not fail,
the answer is SQL's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints, Vector
from sparkshed.engine.compare import compare
from sparkshed.engine.decode import dtype_of
from sparkshed.engine.evaluate import Evaluator, Frame
from sparkshed.engine.lists import Lists
from sparkshed.engine.wide import alike
from sparkshed.sql.expr import COLLECTIVE, Apply, Call, Col, Expr
from sparkshed.sql.types import decimal_of

#: Operators that take values of any type: they compare or choose, and compute nothing.
_COMPARING = {"and", "or", "not", "=", "<=>", "<", "<=", ">", ">=", "isnull", "in"} | {
    "case",
    "coalesce",
    "greatest",
    "least",
}


def is_gridable(expr: Expr) -> bool:
    """Whether :class:`GridEvaluator` can evaluate an expression."""
    if isinstance(expr, Apply):
        return False
    if not isinstance(expr, Call):
        return True
    if expr.op in _COMPARING:
        return all(map(is_gridable, expr.args))
    if expr.op in COLLECTIVE or any(decimal_of(part.type) for part in (expr, *expr.args)):
        return False
    return all(map(is_gridable, expr.args))


class GridFrame:
    """Rows `down` of the bound streams, each paired with all rows `across` of the target."""

    def __init__(self, target: int, shape: tuple[int, int], read: Callable[[Col], Vector]) -> None:
        """Read columns: of the target one value for each row across, of other streams one for each down.

        They are read as :meth:`Evaluator.ready` gives them, so that a caller with many grids has to
        translate words only once.
        """
        self._target = target
        self._read = read
        self._memo: dict[tuple[int, int], Vector] = {}
        self.shape = shape
        self.size = shape[0] * shape[1]

    def column(self, column: Col) -> Vector:
        """A column vector, or a row vector for the target."""
        key = (column.stream, column.column)
        if key not in self._memo:
            values, valid = self._read(column)
            place = (1, -1) if column.stream == self._target else (-1, 1)
            self._memo[key] = Vector(values.reshape(place), None if valid is None else valid.reshape(place))
        return self._memo[key]

    def lists(self, kind: str, column: Col) -> tuple[Lists, Ints]:
        """Not on a grid."""
        raise NotImplementedError

    def arrow(self, column: Col) -> pa.Array:
        """Not on a grid."""
        raise NotImplementedError

    def select(self, rows: Ints) -> Frame:
        """Not on a grid: a grid is evaluated as a whole."""
        raise NotImplementedError


class GridEvaluator(Evaluator):
    """Evaluates whole arrays that broadcast against each other, every operand on every pair."""

    def ready(self, vector: Vector, type_: str) -> Vector:
        """The frame's columns are ready already."""
        return vector

    def on_grid(self, expr: Expr, frame: GridFrame) -> Bools:
        """Where a gridable expression is TRUE, for each pair of the grid; the result may be read-only."""
        return np.broadcast_to(self.holds(expr, frame), frame.shape)

    def holds(self, expr: Expr, frame: Frame) -> Bools:
        """Where the expression is TRUE; a connective of truths needs no third value."""
        if isinstance(expr, Call) and expr.op in ("and", "or"):
            combine = np.logical_and if expr.op == "and" else np.logical_or
            true = self.holds(expr.args[0], frame)
            for arg in expr.args[1:]:
                true = combine(true, self.holds(arg, frame))
            return true
        values, valid = self.evaluate(expr, frame)
        return values if valid is None else values & valid

    def _connective(self, op: str, args: Sequence[Expr], frame: Frame) -> Vector:
        return _connect(op, [self.evaluate(arg, frame) for arg in args])

    def _membership(self, args: Sequence[Expr], frame: Frame) -> Vector:
        value = self.evaluate(args[0], frame)
        return _connect("or", [compare("=", value, self.evaluate(arg, frame)) for arg in args[1:]])

    def _choice(self, expr: Call, frame: Frame) -> Vector:
        args = expr.args
        if expr.op == "coalesce":
            operands = [self.evaluate(arg, frame) for arg in args]
            branches = [(_known(operand), operand) for operand in operands]
        else:
            branches = [
                (self.holds(condition, frame), self.evaluate(value, frame))
                for condition, value in zip(args[0:-1:2], args[1::2], strict=False)
            ]
            if len(args) % 2:
                branches.append((np.ones(1, np.bool_), self.evaluate(args[-1], frame)))
        chosen = Vector(np.zeros(1, dtype_of(expr.type)), np.zeros(1, np.bool_))
        for wanted, branch in reversed(branches):
            valid = np.where(wanted, _known(branch), _known(chosen))
            chosen = Vector(np.where(wanted, *alike(branch.values, chosen.values)), valid)
        return chosen


def _known(vector: Vector) -> Bools:
    return np.ones(1, np.bool_) if vector.valid is None else vector.valid


def _connect(op: str, operands: Sequence[Vector]) -> Vector:
    """AND and OR in three-valued logic: an operand that equals `decisive` settles a pair."""
    decisive = op == "or"
    settled: Bools = np.zeros(1, np.bool_)
    unknown: Bools | None = None
    for values, valid in operands:
        decides = values if decisive else ~values
        if valid is not None:
            decides = decides & valid
            unknown = ~valid if unknown is None else unknown | ~valid
        settled = settled | decides
    return Vector(settled if decisive else ~settled, None if unknown is None else settled | ~unknown)
