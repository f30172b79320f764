"""Casts between number types by Spark's rules."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np

from sparkshed.engine.arithmetic import fail_where
from sparkshed.engine.arrays import AnyArray, Bools, Vector, both_valid, objects
from sparkshed.engine.decimals import each, fit, rescale, shape_of, widen
from sparkshed.engine.decode import dtype_of, unscale
from sparkshed.engine.errors import EvaluationError
from sparkshed.sql.types import FRACTIONAL, decimal_of, is_integral

_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22


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
    if source == "boolean":
        values = values.astype(np.int64)
    _, current = shape_of(source)
    return fit(rescale(widen(values), current, scale), valid, target, ansi=ansi)


def _parse(values: AnyArray, valid: Bools | None, target: str, *, ansi: bool) -> Vector:
    """From doubles by their shortest decimal representation."""
    finite = np.isfinite(values)
    if ansi:
        fail_where(~finite, valid, _overflow("double", target))
    _, scale = shape_of(target)
    with localcontext() as context:
        context.prec = 400
        unit = Decimal(1).scaleb(-scale)
        items = [
            unscale(Decimal(repr(v)).quantize(unit, rounding=ROUND_HALF_UP), scale) if ok else 0
            for v, ok in zip(values.tolist(), finite.tolist(), strict=True)
        ]
    valid = valid if finite.all() else both_valid(valid, finite)
    return fit(objects(items), valid, target, ansi=ansi)


def _from_decimal(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    values, valid = operand
    _, scale = shape_of(source)
    unit = 10**scale
    if target == "boolean":
        return Vector(np.not_equal(values, 0).astype(np.bool_), valid)
    if target in FRACTIONAL:
        small = (
            values.dtype != object and scale <= _EXACT_POWER and bool((np.abs(values) <= _EXACT_DOUBLE).all())
        )
        doubles = values / float(unit) if small else each(values, lambda v: v / unit)
        return Vector(doubles.astype(dtype_of(target)), valid)
    if not is_integral(target):
        msg = f"a cast from {source} to {target} is not supported"
        raise TypeError(msg)
    whole = each(values, lambda v: abs(v) // unit * (1 if v >= 0 else -1))
    limits = np.iinfo(dtype_of(target))
    beyond = np.array([not limits.min <= v <= limits.max for v in whole.tolist()], np.bool_)
    if ansi and bool((beyond if valid is None else beyond & valid).any()):
        raise EvaluationError(_overflow(source, target))
    wrapped = each(whole, lambda v: (v + (1 << 63)) % (1 << 64) - (1 << 63))
    return Vector(wrapped.astype(np.int64).astype(dtype_of(target)), valid)
