"""Exact decimal arithmetic on unscaled integers, in 64 bits where they suffice, else in Arrow's 256."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine import wide
from sparkshed.engine.arrays import INT64_MAX, AnyArray, Bools, Vector, both_valid
from sparkshed.engine.decode import COMPACT
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.wide import WIDE, from_arrow, narrow, to_arrow
from sparkshed.sql.types import decimal_of

#: Digits of a 128-bit and of a 256-bit decimal.
DIGITS, MOST_DIGITS = 38, 76
_AWAY = "half_towards_infinity"


def shape_of(type_: str) -> tuple[int, int]:
    """Precision and scale of an operand; integers count as decimals of scale 0."""
    return decimal_of(type_) or (19, 0)


def largest(values: AnyArray) -> int | None:
    """The largest absolute value; None for values that do not fit 64 bits."""
    if values.dtype == WIDE:
        return None
    return max(int(values.max()), -int(values.min())) if values.size else 0


def times_power(values: AnyArray, digits: int) -> AnyArray | None:
    """The values times a power of ten, if that fits 64 bits."""
    size = largest(values) if digits <= COMPACT else None
    return None if size is None or size * 10**digits > INT64_MAX else values * 10**digits


def exact(values: AnyArray, scale: int) -> pa.Array:
    """Unscaled integers as decimals of 256 bits."""
    return to_arrow(values, pa.decimal128(DIGITS, scale)).cast(pa.decimal256(MOST_DIGITS, scale))


def rescale(values: AnyArray, scale: int, to: int) -> AnyArray | pa.Array:
    """The same numbers with another scale, rounded half up (away from zero)."""
    values = narrow(values)
    if to == scale:
        return values
    if to > scale:
        scaled = times_power(values, to - scale)
        return exact(values, scale).cast(pa.decimal256(MOST_DIGITS, to)) if scaled is None else scaled
    size, unit = largest(values), 10 ** (scale - to)
    if size is None or size + unit // 2 > INT64_MAX or unit > INT64_MAX:
        return exact(values, scale)
    return (np.abs(values) + unit // 2) // unit * np.sign(values)


def fit(values: AnyArray | pa.Array, valid: Bools | None, type_: str, *, ansi: bool) -> Vector:
    """Check the precision of unscaled integers, or of Arrow's decimals, which are rounded first."""
    precision, scale = shape_of(type_)
    over: Bools | None = None
    if isinstance(values, pa.Array):
        values, over = _settled(values, type_)
    elif values.dtype == WIDE:
        over = ~wide.less(wide.wide(wide.absolute(values)), wide.wide(wide.from_int(10**precision)))
    elif 10**precision <= INT64_MAX:
        over = (values >= 10**precision) | (values <= -(10**precision))
    if over is not None and over.any():
        wrong = over if valid is None else over & valid
        if ansi and wrong.any():
            msg = (
                f"[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] a value cannot be represented as "
                f"Decimal({precision}, {scale})."
            )
            raise EvaluationError(msg)
        valid = both_valid(valid, ~over)
        values = np.where(over, np.zeros(1, values.dtype), values)
    return Vector(narrow(values), valid)


def _settled(values: pa.Array, type_: str) -> tuple[AnyArray, Bools]:
    """Unscaled integers in the type's scale, and where they have too many digits (0 stands there)."""
    precision, scale = shape_of(type_)
    if values.type.scale > scale:
        values = pc.round(values, scale, _AWAY)
    settled = pa.decimal256(MOST_DIGITS, scale)
    values = values.cast(settled)
    limit = pa.scalar(Decimal((0, (1,), precision - scale)), settled)
    over = pc.greater_equal(pc.abs(values), limit)
    kept = pc.if_else(over, pa.scalar(Decimal(0), settled), values)
    return narrow(from_arrow(kept.cast(pa.decimal128(DIGITS, scale)))), over.to_numpy(zero_copy_only=False)


def decimal_arithmetic(
    op: str, left: Vector, right: Vector, types: tuple[str, str], type_: str, *, ansi: bool
) -> Vector:
    """`left op right` for `+ - *`, exact: `type_` has the scale that this needs."""
    (p1, s1), (p2, s2) = shape_of(types[0]), shape_of(types[1])
    valid = both_valid(left.valid, right.valid)
    a, b = _whole(left.values), _whole(right.values)
    found = _small(op, a, b, s1, s2)
    if found is None and op in "+-" and s1 == s2 and max(p1, p2) < DIGITS:
        found = wide.add(wide.wide(a), wide.wide(b if op == "+" else wide.negative(b)))
    if found is None:
        a, b = np.broadcast_arrays(a, b)
        return fit(_large(op, a, b, s1, s2), valid, type_, ansi=ansi)
    return fit(found, valid, type_, ansi=ansi)


def _whole(values: AnyArray) -> AnyArray:
    return narrow(values if values.dtype == WIDE else values.astype(np.int64, copy=False))


def _small(op: str, a: AnyArray, b: AnyArray, s1: int, s2: int) -> AnyArray | None:
    """The exact result, unless 64 bits are too few for it."""
    if op == "*":
        first, second = largest(a), largest(b)
        return None if first is None or second is None or first * second > INT64_MAX else a * b
    common = max(s1, s2)
    x, y = times_power(a, common - s1), times_power(b, common - s2)
    if x is None or y is None:
        return None
    first, second = largest(x), largest(y)
    if first is None or second is None or first + second > INT64_MAX:
        return None
    return x + y if op == "+" else x - y


def _large(op: str, a: AnyArray, b: AnyArray, s1: int, s2: int) -> pa.Array:
    """The exact result in 256 bits.

    Arrow gives results as many digits as their types may need, and has at most 76. The operands have 38,
    and so few that the result fits: they are declared as shorter than they are.
    """
    if op == "*":
        half = DIGITS - 1
        return pc.multiply(_declared(a, half, s1), _declared(b, half, s2))
    common = max(s1, s2)
    x, y = (_aligned(values, scale, common) for values, scale in ((a, s1), (b, s2)))
    return pc.add(x, y) if op == "+" else pc.subtract(x, y)


def _declared(values: AnyArray, precision: int, scale: int) -> pa.Array:
    return _as(exact(values, scale), pa.decimal256(precision, scale))


def _aligned(values: AnyArray, scale: int, to: int) -> pa.Array:
    aligned = exact(values, scale).cast(pa.decimal256(MOST_DIGITS, to))
    return _as(aligned, pa.decimal256(MOST_DIGITS - 1, to))


def _as(array: pa.Array, type_: pa.Decimal256Type) -> pa.Array:
    """The same integers under another type, not checked."""
    return pa.Array.from_buffers(type_, len(array), [None, array.buffers()[1]], offset=array.offset)
