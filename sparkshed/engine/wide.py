"""Integers of 128 bits, for decimals of more than 18 digits: laid out as Arrow lays out its decimals.

Most wide decimals hold numbers that 64 bits could hold. So whatever computes with them takes and gives
either plain int64 or :data:`WIDE`, and comes back to int64 where all numbers fit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import INT64_MAX, INT64_MIN, AnyArray, Bools

#: Both halves of an integer in two's complement.
WIDE = np.dtype([("low", "<u8"), ("high", "<i8")])
_SIGN = np.int64(63)
_ONE = np.uint64(1)
_HALF = 2.0**64


def wide(values: AnyArray) -> AnyArray:
    """Integers in 128 bits."""
    if values.dtype == WIDE:
        return values
    out = np.empty(values.shape, WIDE)
    whole = values.astype(np.int64, copy=False)
    out["low"] = whole.view(np.uint64)
    out["high"] = whole >> _SIGN
    return out


def fits(values: AnyArray) -> Bools:
    """Which integers fit 64 bits."""
    if values.dtype != WIDE:
        return np.ones(values.shape, np.bool_)
    same: Bools = low_half(values) >> _SIGN == values["high"]
    return same


def low_half(values: AnyArray) -> AnyArray:
    """The low 64 bits as signed integers, which is the number itself where it fits."""
    return values["low"].view(np.int64) if values.dtype == WIDE else values


def narrow(values: AnyArray) -> AnyArray:
    """Integers in 64 bits, if all of them fit."""
    if values.dtype != WIDE:
        return values
    return np.ascontiguousarray(low_half(values)) if fits(values).all() else values


def alike(left: AnyArray, right: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Two arrays in 128 bits if one of them is."""
    if left.dtype == right.dtype or WIDE not in (left.dtype, right.dtype):
        return left, right
    return wide(left), wide(right)


def from_int(value: int) -> AnyArray:
    """One integer."""
    if INT64_MIN <= value <= INT64_MAX:
        return np.array([value])
    return np.frombuffer(value.to_bytes(16, "little", signed=True), WIDE)


def equal(left: AnyArray, right: AnyArray) -> Bools:
    """Elementwise equality, in 128 bits."""
    same: Bools = (left["low"] == right["low"]) & (left["high"] == right["high"])
    return same


def less(left: AnyArray, right: AnyArray) -> Bools:
    """Elementwise `<`, in 128 bits."""
    below: Bools = left["low"] < right["low"]
    below &= left["high"] == right["high"]
    below |= left["high"] < right["high"]
    return below


def add(left: AnyArray, right: AnyArray) -> AnyArray:
    """Elementwise sum, in 128 bits."""
    low = left["low"] + right["low"]
    out = np.empty(low.shape, WIDE)
    out["low"] = low
    out["high"] = left["high"] + right["high"] + (low < left["low"])
    return out


def negative(values: AnyArray) -> AnyArray:
    """Negated integers."""
    if values.dtype != WIDE:
        if not values.size or int(values.min()) > INT64_MIN:
            return np.negative(values)
        values = wide(values)
    out = np.empty(values.shape, WIDE)
    out["low"] = ~values["low"] + _ONE
    out["high"] = ~values["high"] + (values["low"] == 0)
    return out


def absolute(values: AnyArray) -> AnyArray:
    """Absolute integers."""
    negated = negative(values)
    values, negated = alike(values, negated)
    below = values["high"] < 0 if values.dtype == WIDE else values < 0
    return np.where(below, negated, values)


def as_double(values: AnyArray) -> AnyArray:
    """The integers as doubles, with a relative error of at most 2⁻⁵¹."""
    if values.dtype != WIDE:
        return values.astype(np.float64, copy=False)
    rough = values["high"] * _HALF + values["low"]
    return np.where(fits(values), low_half(values), rough)


def to_arrow(values: AnyArray, type_: pa.Decimal128Type) -> pa.Array:
    """Unscaled integers as Arrow decimals."""
    whole = np.ascontiguousarray(wide(values))
    return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(whole.view(np.uint8))])


def from_arrow(array: pa.Decimal128Array) -> AnyArray:
    """The unscaled integers of Arrow decimals; what stands at NULLs is unspecified."""
    if not len(array):
        return np.empty(0, WIDE)
    return np.frombuffer(array.buffers()[1], WIDE, len(array), 16 * array.offset)
