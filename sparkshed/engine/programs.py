"""Conditions on numbers as short programs of numpy operations over buffers that are used again.

The evaluator allocates an array for every operation. For the grids that a scan compares, that costs
more than the operations; here a result goes into the buffer of an operand that is no longer needed::

    (a.x - b.x) * (a.x - b.x) <= 4        0: a.x - b.x      buffer A
                                          1: 0 * 0          buffer A
                                          2: 1 <= 4         buffer of booleans

Equal parts are computed once, and what depends on one side only stays a single row or column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools
from sparkshed.engine.decode import dtype_of, is_text
from sparkshed.engine.evaluate import literal
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.types import FRACTIONAL, TIMES, is_integral

_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "neg": np.negative, "abs": np.absolute}
_CONNECTIVES = {"and": np.logical_and, "or": np.logical_or}
_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation: a numpy function of earlier slots, and the type of its result."""

    function: Any
    operands: tuple[int, ...]
    dtype: np.dtype[Any]


class Program:
    """A condition that numpy decides on a grid, if no operand is NULL."""

    def __init__(self, compiler: _Compiler, result: int) -> None:
        """Take the steps; a slot is free after its last use."""
        self.columns = compiler.columns
        self.words = compiler.words
        self._constants = compiler.constants
        self._steps = compiler.steps
        self._result = result
        first = len(self.columns) + len(self.words) + len(self._constants)
        last_use = {slot: number for number, step in enumerate(self._steps) for slot in step.operands}
        last_use[result] = len(self._steps)
        self._freed = [
            [slot for slot in set(step.operands) if slot >= first and last_use[slot] == number]
            for number, step in enumerate(self._steps)
        ]
        self._pool: dict[np.dtype[Any], list[AnyArray]] = {}

    @staticmethod
    def of(expr: Expr) -> Program | None:
        """The program of a condition, or None for one that needs the evaluator."""
        compiler = _Compiler(expr)
        try:
            return Program(compiler, compiler.boolean(expr))
        except _NotNumericError:
            return None

    def run(
        self, columns: Sequence[AnyArray], shape: tuple[int, int], words: Sequence[AnyArray] = ()
    ) -> Bools:
        """Where the condition holds; the result is valid until the next run.

        Words are compared by their ranks, which change from batch to batch; so the caller has those of
        the constants, too.
        """
        slots: list[AnyArray] = [*columns, *(word.reshape(1, 1) for word in words), *self._constants]
        owned: dict[int, AnyArray] = {}
        with np.errstate(all="ignore"):
            for step, freed in zip(self._steps, self._freed, strict=True):
                operands = [slots[slot] for slot in step.operands]
                number = len(slots)
                if not any(o.shape == shape for o in operands) and not _spreads(operands):
                    slots.append(step.function(*operands).astype(step.dtype, copy=False))
                else:
                    buffer = self._buffer(step, freed, owned, shape)
                    slots.append(step.function(*operands, out=_view(buffer, shape)))
                    owned[number] = buffer
                for slot in freed:
                    if slot in owned:
                        self._release(owned.pop(slot))
        for buffer in owned.values():
            self._release(buffer)
        return np.broadcast_to(slots[self._result], shape)

    def _buffer(
        self, step: _Step, freed: list[int], owned: dict[int, AnyArray], shape: tuple[int, int]
    ) -> AnyArray:
        for slot in freed:
            if slot in owned and owned[slot].dtype == step.dtype:
                return owned.pop(slot)
        pool = self._pool.setdefault(step.dtype, [])
        size = shape[0] * shape[1]
        while pool:
            buffer = pool.pop()
            if len(buffer) >= size:
                return buffer
        return np.empty(size, step.dtype)

    def _release(self, buffer: AnyArray) -> None:
        self._pool[buffer.dtype].append(buffer)


def _spreads(operands: Sequence[AnyArray]) -> bool:
    """Whether a column meets a row, so that the result covers the grid."""
    return any(o.shape[0] > 1 for o in operands) and any(o.shape[1] > 1 for o in operands)


def _view(buffer: AnyArray, shape: tuple[int, int]) -> AnyArray:
    return buffer[: shape[0] * shape[1]].reshape(shape)


class _NotNumericError(Exception):
    """The condition has a part that is no operation on numbers."""


class _Compiler:
    """Numbers the columns, constants and steps of an expression."""

    def __init__(self, expr: Expr) -> None:
        self.columns: list[Col] = []
        self.words: list[Lit] = []
        self.constants: list[AnyArray] = []
        self.steps: list[_Step] = []
        self._slots: dict[Expr | tuple[Any, ...], int] = {}
        self._collect(expr)
        self._known = len(self.columns) + len(self.words) + len(self.constants)

    def _collect(self, expr: Expr) -> None:
        """Columns and constants come before the first step."""
        leaves: list[Col | Lit] = []

        def walk(node: Expr) -> None:
            if isinstance(node, (Col, Lit)):
                if node not in leaves:
                    leaves.append(node)
            else:
                for arg in node.args:
                    walk(arg)

        walk(expr)
        self.columns = [leaf for leaf in leaves if isinstance(leaf, Col)]
        literals = [leaf for leaf in leaves if isinstance(leaf, Lit)]
        self.words = [lit for lit in literals if is_text(lit.type)]
        constants = [lit for lit in literals if not is_text(lit.type)]
        ordered: list[Expr] = [*self.columns, *self.words, *constants]
        self._slots.update({leaf: number for number, leaf in enumerate(ordered)})
        self.constants = [literal(leaf).values.reshape(1, 1) for leaf in constants]

    def _step(self, function: Any, operands: tuple[int, ...], dtype: str) -> int:
        key = (function, operands, dtype)
        if key not in self._slots:
            self._slots[key] = self._known + len(self.steps)
            self.steps.append(_Step(function, operands, np.dtype(dtype)))
        return self._slots[key]

    def number(self, expr: Expr) -> int:
        """The slot of a number, of a time, or of a word's rank."""
        if not isinstance(expr, Call):
            return self._leaf(expr)
        if expr.type not in FRACTIONAL:
            raise _NotNumericError
        dtype = str(dtype_of(expr.type))
        if expr.op == "cast" and (expr.args[0].type in FRACTIONAL or is_integral(expr.args[0].type)):
            if expr.type == "float" and expr.args[0].type != "float":
                raise _NotNumericError
            return self._step(_converter(dtype), (self.number(expr.args[0]),), dtype)
        if expr.op not in _ARITHMETIC or any(arg.type != expr.type for arg in expr.args):
            raise _NotNumericError
        return self._step(_ARITHMETIC[expr.op], tuple(map(self.number, expr.args)), dtype)

    def _leaf(self, expr: Expr) -> int:
        known = expr.type in FRACTIONAL or is_integral(expr.type) or expr.type in TIMES or is_text(expr.type)
        if not known or (isinstance(expr, Lit) and (expr.value is None or expr.value != expr.value)):
            raise _NotNumericError
        return self._slots[expr]

    def boolean(self, expr: Expr) -> int:
        """The slot of a condition."""
        if not isinstance(expr, Call):
            raise _NotNumericError
        if expr.op in _CONNECTIVES:
            slot = self.boolean(expr.args[0])
            for arg in expr.args[1:]:
                slot = self._step(_CONNECTIVES[expr.op], (slot, self.boolean(arg)), "bool")
            return slot
        if expr.op == "not":
            return self._step(np.logical_not, (self.boolean(expr.args[0]),), "bool")
        if expr.op not in _COMPARISONS:
            raise _NotNumericError
        return self._compare(expr.op, *expr.args)

    def _compare(self, op: str, left: Expr, right: Expr) -> int:
        """Compare as Spark does, to which NaN is the largest number."""
        if isinstance(left, Lit):
            op, left, right = _MIRRORED[op], right, left
        a, b = self.number(left), self.number(right)
        if left.type not in FRACTIONAL or (isinstance(right, Lit) and op in ("<", "<=", "=")):
            return self._step(_COMPARISONS[op], (a, b), "bool")
        if isinstance(right, Lit):
            opposite = np.less if op == ">=" else np.less_equal
            return self._step(np.logical_not, (self._step(opposite, (a, b), "bool"),), "bool")
        if op in (">", ">="):
            op, a, b = _MIRRORED[op], b, a
        here = self._step(np.isnan, (a,), "bool")
        there = self._step(np.isnan, (b,), "bool")
        if op == "<=":
            return self._step(np.logical_or, (self._step(np.less_equal, (a, b), "bool"), there), "bool")
        if op == "<":
            least = self._step(np.logical_or, (self._step(np.less_equal, (b, a), "bool"), here), "bool")
            return self._step(np.logical_not, (least,), "bool")
        both = self._step(np.logical_and, (here, there), "bool")
        return self._step(np.logical_or, (self._step(np.equal, (a, b), "bool"), both), "bool")


_CONVERTERS: dict[str, Callable[..., AnyArray]] = {}


def _converter(dtype: str) -> Callable[..., AnyArray]:
    """The conversion to a type, as a function like numpy's own."""

    def convert(values: AnyArray, out: AnyArray | None = None) -> AnyArray:
        if out is None:
            return values.astype(dtype)
        np.copyto(out, values)
        return out

    return _CONVERTERS.setdefault(dtype, convert)
