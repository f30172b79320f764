"""Exact decimal arithmetic on unscaled integers, in 64 bits where they suffice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools, Vector, both_valid, objects
from sparkshed.engine.decode import COMPACT
from sparkshed.engine.errors import EvaluationError
from sparkshed.sql.types import decimal_of


def each(values: AnyArray, function: Callable[[Any], Any]) -> AnyArray:
    """A Python function applied to each value; the result holds objects."""
    return objects([function(v) for v in values.tolist()])


def widen(values: AnyArray) -> AnyArray:
    """As Python integers, which never overflow."""
    return values if values.dtype == object else values.astype(object)


def shape_of(type_: str) -> tuple[int, int]:
    """Precision and scale of an operand; integers count as decimals of scale 0."""
    return decimal_of(type_) or (19, 0)


def rescale(values: AnyArray, scale: int, to: int) -> AnyArray:
    """The same numbers with another scale, as Python integers, rounded half up (away from zero)."""
    if to >= scale:
        return widen(values) * 10 ** (to - scale) if to > scale else values
    unit = 10 ** (scale - to)
    return each(values, lambda v: (abs(v) + unit // 2) // unit * (1 if v >= 0 else -1))


def fit(values: AnyArray, valid: Bools | None, type_: str, *, ansi: bool) -> Vector:
    """Check the precision, and use 64 bits if the type allows it."""
    precision, scale = shape_of(type_)
    limit = 10**precision
    over: Bools = np.zeros(len(values), np.bool_)
    if precision <= COMPACT or values.dtype == object:
        over = np.greater_equal(np.abs(values), limit).astype(np.bool_)
    if over.any():
        wrong = over if valid is None else over & valid
        if ansi and wrong.any():
            msg = (
                f"[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] a value cannot be represented as "
                f"Decimal({precision}, {scale})."
            )
            raise EvaluationError(msg)
        valid = both_valid(valid, ~over)
        values = np.where(over, 0, values)
    return Vector(values.astype(np.int64, copy=False) if precision <= COMPACT else widen(values), valid)


def decimal_arithmetic(
    op: str, left: Vector, right: Vector, types: tuple[str, str], type_: str, *, ansi: bool
) -> Vector:
    """`left op right` for `+ - * %`, exact, then rounded to the scale of `type_`."""
    (p1, s1), (p2, s2) = shape_of(types[0]), shape_of(types[1])
    _, scale = shape_of(type_)
    valid = both_valid(left.valid, right.valid)
    a, b = left.values, right.values
    if op == "*":
        exact = s1 + s2
        if p1 + p2 > COMPACT:
            a, b = widen(a), widen(b)
        return fit(rescale(a * b, exact, scale), valid, type_, ansi=ansi)
    exact = max(s1, s2)
    digits = max(p1 - s1, p2 - s2) + exact + 1
    a, b = _aligned(a, s1, exact, digits), _aligned(b, s2, exact, digits)
    if op == "%":
        a, b = widen(a), widen(b)
        zero: Bools = np.equal(b, 0).astype(np.bool_)
        if ansi and bool((zero if valid is None else zero & valid).any()):
            msg = "[REMAINDER_BY_ZERO] Remainder by zero."
            raise EvaluationError(msg)
        valid = both_valid(valid, ~zero)
        values = np.abs(a) % np.where(zero, 1, np.abs(b)) * np.where(np.less(a, 0), -1, 1)
    else:
        values = a + b if op == "+" else a - b
    return fit(rescale(values, exact, scale), valid, type_, ansi=ansi)


def _aligned(values: AnyArray, scale: int, to: int, digits: int) -> AnyArray:
    if digits <= COMPACT and values.dtype != object:
        scaled: AnyArray = values * 10 ** (to - scale)
        return scaled
    return rescale(widen(values), scale, to)
