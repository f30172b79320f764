"""From Arrow columns to numpy: one physical form for each Spark type.

========================  ===========================================
Spark type                values
========================  ===========================================
boolean, integers, float  the numpy type of the same width
date                      days, int32
timestamps, intervals     microseconds, int64
decimal(p,s), p <= 18     unscaled value, int64
wider decimal             unscaled value, Python int in an object array
string, binary            bytes, which order as Spark orders them
arrays, structs           nested tuples that order and hash as values
========================  ===========================================
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import DAY_US, AnyArray, Bools, Ints, Vector, objects
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
}
#: Largest precision whose unscaled values fit 64 bits.
COMPACT = 18
_MAX_DAYS = 100_000_000


def dtype_of(type_: str) -> np.dtype[Any]:
    """The numpy type that holds values of a Spark type."""
    if type_ in _DTYPES:
        return np.dtype(_DTYPES[type_])
    if is_day_time(type_):
        return np.dtype("int64")
    decimal = decimal_of(type_)
    return np.dtype("int64" if decimal is not None and decimal[0] <= COMPACT else "O")


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
        return _unscaled(array) if decimal[0] <= COMPACT else _wide(array, decimal[1])
    if type_ in TIMES or is_day_time(type_):
        array = array.view(pa.int32() if type_ == "date" else pa.int64())
    elif type_ not in _DTYPES:
        return _object_values(array)
    if array.null_count:
        array = array.fill_null(False if type_ == "boolean" else 0)
    values: AnyArray = array.to_numpy(zero_copy_only=False)
    return values.astype(dtype_of(type_), copy=False)


def _unscaled(array: pa.Array) -> Ints:
    """The low 64 bits of 128-bit decimals, which are the value when it is compact."""
    words = np.frombuffer(array.buffers()[1], dtype="<i8")
    return words[2 * array.offset : 2 * (array.offset + len(array)) : 2].astype(np.int64)


def _wide(array: pa.Array, scale: int) -> AnyArray:
    return objects([0 if v is None else unscale(v, scale) for v in array.to_pylist()])


def unscale(value: Decimal, scale: int) -> int:
    """The integer that stands for a decimal of the given scale."""
    with localcontext() as context:
        context.prec = 100
        return int(value.scaleb(scale))


def _object_values(array: pa.Array) -> AnyArray:
    kinds = pa.types
    if kinds.is_string(array.type) or kinds.is_large_string(array.type):
        array = array.cast(pa.large_binary())  # Spark's strings need not be valid UTF-8
    if kinds.is_binary(array.type) or kinds.is_large_binary(array.type):
        return objects([b"" if v is None else v for v in array.to_pylist()])
    return objects([freeze(v) for v in array.to_pylist()])


def freeze(value: object) -> Any:
    """A hashable stand-in for a nested value: NULL first, NaN last and equal to itself."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(freeze(v) for v in value.values()))
    if isinstance(value, list):
        return (1, tuple(freeze(v) for v in value))
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value + 0.0)
    return (1, value)


def decode_times(array: pa.Array, type_: str) -> Ints:
    """Row times in microseconds."""
    values = _values(array, type_).astype(np.int64, copy=False)
    return np.clip(values, -_MAX_DAYS, _MAX_DAYS) * DAY_US if type_ == "date" else values
