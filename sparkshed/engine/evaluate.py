"""Vectorised evaluation of typed expressions with SQL's three-valued logic.

An operand is evaluated only for the rows that need it: AND and OR stop at the first operand that
decides, CASE and COALESCE take a branch only for its rows. So in ANSI mode an expression fails on
exactly the rows on which Spark would fail.

Byte strings are compared by their ranks among all known ones, so every value is a number here.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

import numpy as np
import pyarrow as pa

from sparkshed.engine.arithmetic import absolute, binary, negate
from sparkshed.engine.arrays import Bools, Ints, Vector
from sparkshed.engine.casts import cast
from sparkshed.engine.codes import Codebook
from sparkshed.engine.collective import collective, kind_of
from sparkshed.engine.compare import compare, equal, extreme, null_safe_equal
from sparkshed.engine.decode import dtype_of, is_text, unscale
from sparkshed.engine.encode import encode
from sparkshed.engine.lists import Lists
from sparkshed.engine.python import apply_predicate
from sparkshed.engine.wide import WIDE, from_int, narrow, wide
from sparkshed.sql.expr import COLLECTIVE, Apply, Call, Col, Expr, Lit
from sparkshed.sql.types import decimal_of

_COMPARISONS = ("=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%")


class Frame(Protocol):
    """Rows to evaluate on."""

    @property
    def size(self) -> int:
        """Number of rows."""

    def column(self, column: Col) -> Vector:
        """Values of a column; codes for words."""

    def lists(self, kind: str, column: Col) -> tuple[Lists, Ints]:
        """All lists of a column of arrays or maps, and which of them each row has."""

    def arrow(self, column: Col) -> pa.Array:
        """Arrow values of a column."""

    def select(self, rows: Ints) -> Frame:
        """Only the given rows."""


class Evaluator:
    """Evaluates expressions; `ansi` decides whether overflow and division by zero are errors."""

    def __init__(self, ansi: bool, codebook: Codebook) -> None:
        """Choose the mode, and the codebook that encoded the columns and knows the conditions' words."""
        self._ansi = ansi
        self._codebook = codebook

    def holds(self, expr: Expr, frame: Frame) -> Bools:
        """Where a boolean expression is TRUE, neither FALSE nor NULL."""
        values, valid = self.evaluate(expr, frame)
        true = values if valid is None else values & valid
        return np.broadcast_to(true, (frame.size,))

    def evaluate(self, expr: Expr, frame: Frame) -> Vector:
        """The expression's value on each row; constants have length one."""
        if isinstance(expr, Col):
            return self.ready(frame.column(expr), expr.type)
        if isinstance(expr, Lit):
            return self.literal(expr)
        if isinstance(expr, Apply):
            return apply_predicate(expr.predicate, [self._arrow(arg, frame) for arg in expr.args])
        op, args = expr.op, expr.args
        if op in ("and", "or"):
            return self._connective(op, args, frame)
        if op in ("case", "coalesce"):
            return self._choice(expr, frame)
        if op == "in":
            return self._membership(args, frame)
        if op in COLLECTIVE:
            return self._collective(op, args, frame)
        operands = [self.evaluate(arg, frame) for arg in args]
        if op in _COMPARISONS:
            return compare(op, operands[0], operands[1])
        if op in _ARITHMETIC:
            types = (args[0].type, args[1].type)
            return binary(op, operands[0], operands[1], types, expr.type, ansi=self._ansi)
        if op in ("greatest", "least"):
            best = operands[0]
            for operand in operands[1:]:
                best = extreme(op, best, operand)
            return best
        return self._simple(expr, operands)

    def ready(self, vector: Vector, type_: str) -> Vector:
        """A column of rows in the form to compute with: words as ranks, wide decimals as short as can be."""
        if is_text(type_):
            return Vector(self._codebook.ranked(vector.values), vector.valid)
        return Vector(narrow(vector.values), vector.valid) if vector.values.dtype == WIDE else vector

    def literal(self, lit: Lit) -> Vector:
        """A constant as a vector of length one."""
        if is_text(lit.type) and lit.value is not None:
            return Vector(self._codebook.literal(lit), None)
        return literal(lit)

    def _simple(self, expr: Call, operands: Sequence[Vector]) -> Vector:
        operand = operands[0]
        if expr.op == "<=>":
            return null_safe_equal(operand, operands[1])
        if expr.op == "not":
            return Vector(~operand.values, operand.valid)
        if expr.op == "isnull":
            return Vector(np.zeros(1, np.bool_) if operand.valid is None else ~operand.valid, None)
        if expr.op == "neg":
            return negate(operand, expr.type, ansi=self._ansi)
        if expr.op == "abs":
            return absolute(operand, expr.type, ansi=self._ansi)
        return cast(operand, expr.args[0].type, expr.type, ansi=self._ansi)

    def _collective(self, op: str, args: Sequence[Expr], frame: Frame) -> Vector:
        """An operator over two whole columns of arrays or maps."""
        left, right = args
        assert isinstance(left, Col) and isinstance(right, Col)
        kind = kind_of(op)
        return collective(op, *frame.lists(kind, left), *frame.lists(kind, right))

    def _arrow(self, expr: Expr, frame: Frame) -> pa.Array:
        """An argument of a Python predicate."""
        if isinstance(expr, Col):
            return frame.arrow(expr)
        return encode(self.evaluate(expr, frame), expr.type, frame.size, self._codebook)

    def _connective(self, op: str, args: Sequence[Expr], frame: Frame) -> Vector:
        """AND and OR: an operand that equals `decisive` settles a row."""
        decisive = op == "or"
        settled = np.zeros(frame.size, np.bool_)
        unknown = np.zeros(frame.size, np.bool_)
        for arg in args:
            rows = np.flatnonzero(~settled)
            if not len(rows):
                break
            value, valid = self._on(arg, frame, rows)
            known = np.ones(1, np.bool_) if valid is None else valid
            settled[rows] = (value == decisive) & known
            if valid is not None:
                unknown[rows] |= ~valid
        return Vector(settled == decisive, settled | ~unknown if unknown.any() else None)

    def _on(self, expr: Expr, frame: Frame, rows: Ints) -> Vector:
        """The expression on some rows only."""
        return self.evaluate(expr, frame if len(rows) == frame.size else frame.select(rows))

    def _choice(self, expr: Call, frame: Frame) -> Vector:
        """CASE and COALESCE: each row takes the first branch that wants it."""
        args = expr.args
        out = _Output(frame.size, expr.type)
        if expr.op == "coalesce":
            for arg in args:
                rows = np.flatnonzero(~out.valid)
                if len(rows):
                    out.put(rows, self._on(arg, frame, rows))
            return out.vector
        left = np.arange(frame.size)
        for condition, value in zip(args[0:-1:2], args[1::2], strict=False):
            if not len(left):
                break
            chosen = self.holds(condition, frame if len(left) == frame.size else frame.select(left))
            rows, left = left[chosen], left[~chosen]
            if len(rows):
                out.put(rows, self._on(value, frame, rows))
        if len(args) % 2 and len(left):
            out.put(left, self._on(args[-1], frame, left))
        return out.vector

    def _membership(self, args: Sequence[Expr], frame: Frame) -> Vector:
        """IN: TRUE on a match, else NULL if the value or an option is NULL."""
        values, present = self.evaluate(args[0], frame)
        found = np.zeros(frame.size, np.bool_)
        unknown = (
            np.zeros(frame.size, np.bool_) if present is None else np.broadcast_to(~present, found.shape)
        )
        values = np.broadcast_to(values, found.shape)
        open_ = ~unknown
        for arg in args[1:]:
            rows = np.flatnonzero(open_ & ~found)
            if not len(rows):
                break
            option, valid = self._on(arg, frame, rows)
            match = equal(values.take(rows), option)
            if valid is not None:
                unknown = unknown.copy()
                unknown[rows] |= ~valid
                match = match & valid
            found[rows] = match
        return Vector(found, found | ~unknown if unknown.any() else None)


class _Output:
    """A result column that is written branch by branch."""

    def __init__(self, size: int, type_: str) -> None:
        self._values = np.zeros(size, dtype_of(type_))
        self.valid = np.zeros(size, np.bool_)

    def put(self, rows: Ints, vector: Vector) -> None:
        self._values[rows] = wide(vector.values) if self._values.dtype == WIDE else vector.values
        self.valid[rows] = True if vector.valid is None else vector.valid

    @property
    def vector(self) -> Vector:
        return Vector(narrow(self._values), None if self.valid.all() else self.valid)


def literal(lit: Lit) -> Vector:
    """A constant that is no word as a vector of length one."""
    dtype = dtype_of(lit.type)
    if lit.value is None:
        return Vector(np.zeros(1, dtype), np.zeros(1, np.bool_))
    decimal = decimal_of(lit.type)
    if decimal is None:
        return Vector(np.array([lit.value], dtype), None)
    value = lit.value if isinstance(lit.value, Decimal) else Decimal(str(lit.value))
    return Vector(from_int(unscale(value, decimal[1])), None)
