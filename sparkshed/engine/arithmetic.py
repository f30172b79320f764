"""Arithmetic by Spark's rules, with and without ANSI mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparkshed.engine import wide
from sparkshed.engine.arrays import DAY_US, INT64_MIN, AnyArray, Bools, Vector, both_valid
from sparkshed.engine.decimals import decimal_arithmetic
from sparkshed.engine.decode import dtype_of
from sparkshed.engine.errors import EvaluationError
from sparkshed.sql.types import decimal_of, is_day_time, is_integral

#: Products below this are exact in doubles' magnitude estimate; larger ones are divided again.
_SURE = float(1 << 62)


def fail_where(bad: Bools, valid: Bools | None, error: str) -> None:
    """Raise if a row that is not NULL went wrong."""
    if bad.any() and (valid is None or bool((bad & valid).any())):
        raise EvaluationError(error)


def binary(op: str, left: Vector, right: Vector, types: tuple[str, str], type_: str, *, ansi: bool) -> Vector:
    """`left op right` for `+ - * / %` in type `type_`."""
    if decimal_of(type_) is not None:
        return decimal_arithmetic(op, left, right, types, type_, ansi=ansi)
    if op in ("/", "%"):
        return _division(op, left, right, ansi=ansi)
    valid = both_valid(left.valid, right.valid)
    a, b = left.values, right.values
    if "date" in types:
        a, b, unit = _with_dates(a, b, types, type_)
        values, overflow = _exact(op, a, b, np.dtype("int64"))
        if unit != 1:
            values = values // unit
        narrow = values.astype(dtype_of(type_))
        overflow |= narrow != values
        values = narrow
    elif a.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return Vector({"+": np.add, "-": np.subtract, "*": np.multiply}[op](a, b), valid)
    else:
        values, overflow = _exact(op, a, b, dtype_of(type_))
    if ansi:
        fail_where(overflow, valid, _overflow_message(op, type_))
    return Vector(values, valid)


def _overflow_message(op: str, type_: str) -> str:
    if type_ in ("tinyint", "smallint"):
        return f"[BINARY_ARITHMETIC_OVERFLOW] {op} on {type_} caused overflow."
    if is_day_time(type_):
        return f"[INTERVAL_ARITHMETIC_OVERFLOW] Overflow of {op} on intervals."
    if not is_integral(type_):
        return f"[DATETIME_OVERFLOW] Overflow of {op} on {type_}."
    return f"[ARITHMETIC_OVERFLOW] {'integer' if type_ == 'int' else 'long'} overflow in {op}."


def _with_dates(
    a: AnyArray, b: AnyArray, types: tuple[str, str], type_: str
) -> tuple[AnyArray, AnyArray, int]:
    """Operands in one unit, and the unit of the result in it: whole days or microseconds."""
    in_days = all(t == "date" or is_integral(t) for t in types) and not is_day_time(type_)
    if in_days:
        return a.astype(np.int64), b.astype(np.int64), 1
    sides = [
        values.astype(np.int64) * (DAY_US if t == "date" else 1)
        for values, t in zip((a, b), types, strict=True)
    ]
    return sides[0], sides[1], DAY_US if type_ == "date" else 1


def _exact(op: str, a: AnyArray, b: AnyArray, dtype: np.dtype[Any]) -> tuple[AnyArray, Bools]:
    """Wrapped integer result as Java computes it, and where it overflowed."""
    a, b = a.astype(np.int64, copy=False), b.astype(np.int64, copy=False)
    overflow: Bools
    if op == "*":
        values = a * b
        overflow = _product_overflow(a, b, values)
    elif op == "+":
        values = a + b
        overflow = ((a ^ values) & (b ^ values)) < 0
    else:
        values = a - b
        overflow = ((a ^ b) & (a ^ values)) < 0
    if dtype.itemsize < values.dtype.itemsize:
        narrow = values.astype(dtype)
        return narrow, overflow | (narrow != values)
    return values, overflow


def _product_overflow(a: AnyArray, b: AnyArray, product: AnyArray) -> Bools:
    """Where a product was wrapped: dividing it by one factor does not give the other."""
    overflow: Bools = np.abs(a.astype(np.float64) * b.astype(np.float64)) >= _SURE
    if overflow.any():
        with np.errstate(all="ignore"):
            wrong = product // np.where(a == 0, 1, a) != b
        overflow = overflow & (wrong | ((a == -1) & (b == INT64_MIN)))
    return overflow


def _division(op: str, left: Vector, right: Vector, *, ansi: bool) -> Vector:
    a, b = left.values, right.values
    valid = both_valid(left.valid, right.valid)
    zero: Bools = np.equal(b, 0)
    if zero.any():
        if ansi:
            name = "[DIVIDE_BY_ZERO] Division" if op == "/" else "[REMAINDER_BY_ZERO] Remainder"
            fail_where(zero, valid, f"{name} by zero.")
        valid = both_valid(valid, ~zero)
        b = np.where(zero, np.ones(1, b.dtype), b)
    with np.errstate(all="ignore"):
        if op == "/":
            return Vector(np.divide(a, b), valid)
        if b.dtype.kind == "i":
            b = np.where(b == -1, np.ones(1, b.dtype), b)
        return Vector(np.fmod(a, b), valid)


def negate(operand: Vector, type_: str, *, ansi: bool) -> Vector:
    """`-operand`."""
    if decimal_of(type_) is not None:
        return Vector(wide.negative(operand.values), operand.valid)
    _check_negation("-", operand, type_, ansi=ansi)
    return Vector(np.negative(operand.values), operand.valid)


def absolute(operand: Vector, type_: str, *, ansi: bool) -> Vector:
    """`abs(operand)`."""
    if decimal_of(type_) is not None:
        return Vector(wide.absolute(operand.values), operand.valid)
    _check_negation("abs", operand, type_, ansi=ansi)
    return Vector(np.absolute(operand.values), operand.valid)


def _check_negation(op: str, operand: Vector, type_: str, *, ansi: bool) -> None:
    values = operand.values
    if ansi and values.dtype.kind == "i":
        fail_where(values == np.iinfo(values.dtype).min, operand.valid, _overflow_message(op, type_))
