"""Casts between number types by Spark's rules: those by which operands get a type in common."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import AnyArray, Vector
from sparkshed.engine.decimals import DIGITS, fit, largest, rescale, shape_of
from sparkshed.engine.decode import dtype_of
from sparkshed.engine.wide import narrow, to_arrow
from sparkshed.sql.types import FRACTIONAL, decimal_of, is_integral

_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22


def cast(operand: Vector, source: str, target: str, *, ansi: bool) -> Vector:
    """Convert a vector from one Spark type to another that takes in all of its numbers, if not all digits."""
    if source == target:
        return operand
    values, valid = operand
    if decimal_of(target) is not None and source not in FRACTIONAL:
        if decimal_of(source) is None:
            values = values.astype(np.int64)
        return fit(rescale(values, shape_of(source)[1], shape_of(target)[1]), valid, target, ansi=ansi)
    dtype = dtype_of(target)
    if target in FRACTIONAL:
        if decimal_of(source) is not None:
            values = _as_doubles(narrow(values), shape_of(source)[1])
        with np.errstate(all="ignore"):
            return Vector(values.astype(dtype), valid)
    if not (is_integral(source) and is_integral(target) and dtype_of(source).itemsize < dtype.itemsize):
        msg = f"a cast from {source} to {target} is not supported"
        raise TypeError(msg)
    return Vector(values.astype(dtype), valid)


def _as_doubles(values: AnyArray, scale: int) -> AnyArray:
    """The nearest doubles: by a division where it rounds once, else from the digits."""
    size = largest(values)
    if size is not None and size <= _EXACT_DOUBLE and scale <= _EXACT_POWER:
        return values / float(10**scale)
    digits = to_arrow(values, pa.decimal128(DIGITS, scale)).cast(pa.string())
    doubles: AnyArray = digits.cast(pa.float64()).to_numpy()
    return doubles
