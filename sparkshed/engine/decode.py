"""From Arrow columns to numpy: one physical form for each Spark type.

========================  ===========================================
Spark type                values
========================  ===========================================
boolean, integers, float  the numpy type of the same width
date                      days, int32
timestamps, intervals     microseconds, int64
decimal(p,s), p <= 18     unscaled value, int64
wider decimal             unscaled value in 128 bits, see :mod:`.wide`
string, binary, nested    codes, see :class:`.codes.Codebook`
========================  ===========================================
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import DAY_US, AnyArray, Bools, Ints, Vector
from sparkshed.engine.wide import WIDE, from_arrow
from sparkshed.sql.types import TIMES, decimal_of, is_day_time

_DTYPES: dict[str, str] = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "date": "int32",
    "timestamp": "int64",
    "timestamp_ntz": "int64",
    "void": "bool",
}
#: Largest precision whose unscaled values fit 64 bits.
COMPACT = 18
_MAX_DAYS = 100_000_000


def is_text(type_: str) -> bool:
    """Whether values are byte strings."""
    return type_ in ("string", "binary")


def dtype_of(type_: str) -> np.dtype[Any]:
    """The numpy type that holds values of a Spark type."""
    if type_ in _DTYPES:
        return np.dtype(_DTYPES[type_])
    decimal = decimal_of(type_)
    return WIDE if decimal is not None and decimal[0] > COMPACT else np.dtype("int64")


def normalise(array: pa.Array, type_: str) -> pa.Array:
    """Undo encodings that other producers may use: dictionaries, other units, other decimal widths."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    decimal = decimal_of(type_)
    if decimal is not None:
        return array.cast(pa.decimal128(*decimal))
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz))
    if pa.types.is_duration(array.type):
        return array.cast(pa.duration("us"))
    if pa.types.is_date(array.type):
        return array.cast(pa.date32())
    return array


def validity(array: pa.Array) -> Bools | None:
    """Where the array is not NULL; None when it never is."""
    if not array.null_count:
        return None
    valid: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def decode(array: pa.Array, type_: str) -> Vector:
    """Values and validity of an Arrow array; what stands at NULLs is unspecified."""
    return Vector(_values(array, type_), validity(array))


def _values(array: pa.Array, type_: str) -> AnyArray:
    decimal = decimal_of(type_)
    if decimal is not None:
        return _unscaled(array, compact=decimal[0] <= COMPACT)
    if type_ == "void":
        return np.zeros(len(array), np.bool_)
    if type_ in TIMES or is_day_time(type_):
        array = array.view(pa.int32() if type_ == "date" else pa.int64())
    elif type_ not in _DTYPES:
        msg = f"values of type {type_} have no numpy form of their own"
        raise TypeError(msg)
    if array.null_count:
        array = array.fill_null(False if type_ == "boolean" else 0)
    values: AnyArray = array.to_numpy(zero_copy_only=False)
    return values.astype(dtype_of(type_), copy=False)


def _unscaled(array: pa.Array, compact: bool) -> AnyArray:
    """Unscaled decimals, 0 where they are NULL; the low 64 bits are enough for compact ones."""
    values = from_arrow(array)
    values = values["low"].astype(np.int64) if compact else values
    valid = validity(array)
    return values if valid is None else np.where(valid, values, np.zeros(1, values.dtype))


def unscale(value: Decimal, scale: int) -> int:
    """The integer that stands for a decimal of the given scale."""
    with localcontext() as context:
        context.prec = 100
        return int(value.scaleb(scale))


def decode_times(array: pa.Array, type_: str) -> Ints:
    """Row times in microseconds."""
    values = _values(array, type_).astype(np.int64, copy=False)
    return np.clip(values, -_MAX_DAYS, _MAX_DAYS) * DAY_US if type_ == "date" else values
