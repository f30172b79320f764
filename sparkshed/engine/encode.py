"""From numpy back to Arrow, for computed values: the inverse of :mod:`sparkshed.engine.decode`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import Vector
from sparkshed.engine.codes import Codebook
from sparkshed.engine.decode import is_text
from sparkshed.engine.wide import to_arrow
from sparkshed.sql.types import decimal_of, is_day_time

_PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def arrow_type(type_: str) -> pa.DataType:
    """The Arrow type of a Spark type that is not nested."""
    if is_day_time(type_):
        return pa.duration("us")
    decimal = decimal_of(type_)
    if decimal is not None:
        return pa.decimal128(*decimal)
    if type_ in _PLAIN:
        return _PLAIN[type_]
    msg = f"a computed value of type {type_} cannot be passed on; pass the columns it is computed from"
    raise TypeError(msg)


def encode(vector: Vector, type_: str, size: int, codebook: Codebook) -> pa.Array:
    """A vector as `size` Arrow values; a constant is repeated."""
    target = arrow_type(type_)
    values = np.broadcast_to(vector.values, (size,))
    missing = None if vector.valid is None else ~np.broadcast_to(vector.valid, (size,))
    if is_text(type_):
        return codebook.words(values, missing).cast(pa.binary()).view(target)
    if pa.types.is_decimal(target):
        decimals = to_arrow(values, target)
        return decimals if missing is None else pc.if_else(pa.array(missing), None, decimals)
    array = pa.array(values, mask=missing)
    return array if array.type == target else array.view(target)
