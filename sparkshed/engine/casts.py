"""Casts between number types by Spark's rules."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arithmetic import fail_where
from sparkshed.engine.arrays import AnyArray, Bools, Vector, both_valid
from sparkshed.engine.decimals import DIGITS, MOST_DIGITS, exact, fit, largest, rescale, shape_of
from sparkshed.engine.decode import COMPACT, dtype_of
from sparkshed.engine.wide import fits, from_arrow, low_half, narrow, nonzero, to_arrow
from sparkshed.sql.types import FRACTIONAL, decimal_of, is_integral

_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22
#: A double has at most this many digits, written as short as possible.
_DOUBLE_DIGITS = 17


def cast(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    """Convert a vector from one Spark type to another."""
    if source == target:
        return operand
    values, valid = operand
    if decimal_of(target) is not None:
        return _to_decimal(operand, source, target, ansi=ansi)
    if decimal_of(source) is not None:
        return _from_decimal(operand, source, target, ansi=ansi)
    if target == "boolean":
        return Vector(values != 0, valid)
    if target in FRACTIONAL:
        with np.errstate(all="ignore"):
            return Vector(values.astype(dtype_of(target)), valid)
    if not is_integral(target):
        msg = f"a cast from {source} to {target} is not supported"
        raise TypeError(msg)
    if source in FRACTIONAL:
        return _truncate(operand, source, target, ansi=ansi)
    return _narrow(operand, source, target, ansi=ansi)


def _overflow(source: str, target: str) -> str:
    return f"[CAST_OVERFLOW] A value of the type {source} cannot be cast to {target} due to an overflow."


def _narrow(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    """Between integers; without ANSI the high bits are cut off."""
    values = operand.values.astype(dtype_of(target))
    if ansi:
        fail_where(values != operand.values, operand.valid, _overflow(source, target))
    return Vector(values, operand.valid)


def _truncate(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    """From floating point towards zero; without ANSI as Java: NaN is 0 and large values are clamped.

    Java has no conversion to 8 or 16 bits: it clamps to 32 and then cuts bits off.
    """
    dtype = dtype_of(target)
    values = operand.values.astype(np.float64)
    limits = np.iinfo(dtype)
    if ansi:
        with np.errstate(invalid="ignore"):
            fits = (np.floor(values) <= float(limits.max)) & (np.ceil(values) >= float(limits.min))
        fail_where(~fits, operand.valid, _overflow(source, target))
    clamp = np.iinfo(np.int64 if dtype.itemsize == 8 else np.int32)
    high, low = values >= float(clamp.max), values <= float(clamp.min)
    inside = np.where(high | low | np.isnan(values), 0.0, values).astype(np.int64)
    clamped = np.where(high, clamp.max, np.where(low, clamp.min, inside))
    return Vector(clamped.astype(dtype), operand.valid)


def _to_decimal(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    values, valid = operand
    _, scale = shape_of(target)
    if source in FRACTIONAL:
        return _parse(values.astype(np.float64), valid, target, ansi=ansi)
    _, current = shape_of(source)
    if decimal_of(source) is None:
        values = values.astype(np.int64)
    return fit(rescale(values, current, scale), valid, target, ansi=ansi)


def _parse(values: AnyArray, valid: Bools | None, target: str, *, ansi: bool) -> Vector:
    """From doubles by their shortest decimal representation.

    What is far too large for the type has no room in 256 bits, what is far too small would need more
    digits behind the point; neither depends on digits.
    """
    finite = np.isfinite(values)
    if ansi:
        fail_where(~finite, valid, _overflow("double", target))
    valid = valid if finite.all() else both_valid(valid, finite)
    precision, scale = shape_of(target)
    size = np.abs(np.where(finite, values, 0.0))
    huge = size >= 2.0 * 10.0 ** (precision - scale)
    plain = finite & ~huge & (size >= 10.0 ** -(scale + 1))
    texts = pa.array(np.where(huge, 2.0 * 10.0 ** (precision - scale), np.where(plain, values, 0.0)))
    digits = pa.decimal256(MOST_DIGITS, scale + 1 + _DOUBLE_DIGITS)
    return fit(texts.cast(pa.string()).cast(digits), valid, target, ansi=ansi)


def _from_decimal(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    values, valid = narrow(operand.values), operand.valid
    _, scale = shape_of(source)
    if target == "boolean":
        return Vector(nonzero(values), valid)
    if target in FRACTIONAL:
        return Vector(_as_doubles(values, scale).astype(dtype_of(target)), valid)
    if not is_integral(target):
        msg = f"a cast from {source} to {target} is not supported"
        raise TypeError(msg)
    whole = _truncated(values, scale)
    low = low_half(whole)
    if ansi:
        limits = np.iinfo(dtype_of(target))
        fail_where(~fits(whole) | (low < limits.min) | (low > limits.max), valid, _overflow(source, target))
    return Vector(low.astype(dtype_of(target)), valid)


def _as_doubles(values: AnyArray, scale: int) -> AnyArray:
    """The nearest doubles: by a division where it rounds once, else from the digits."""
    size = largest(values)
    if size is not None and size <= _EXACT_DOUBLE and scale <= _EXACT_POWER:
        return values / float(10**scale)
    digits = to_arrow(values, pa.decimal128(DIGITS, scale)).cast(pa.string())
    doubles: AnyArray = digits.cast(pa.float64()).to_numpy()
    return doubles


def _truncated(values: AnyArray, scale: int) -> AnyArray:
    """Decimals cut off at the point."""
    if largest(values) is None:
        whole = pc.trunc(exact(values, scale)).cast(pa.decimal128(DIGITS, 0))
        return from_arrow(whole)
    if scale > COMPACT:
        return np.zeros_like(values)
    # Division rounds down; what is negative and no whole number comes out one too low.
    unit = 10**scale
    floor: AnyArray = values // unit
    floor += (floor < 0) & (floor * unit != values)
    return floor
