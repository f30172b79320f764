"""What rows take in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import Ints
from sparkshed.engine.store import RowStore
from sparkshed.planner.buffering import ROW_OVERHEAD

#: Where the value of a row begins and ends, in columns without a width.
_ENDS = 8


def row_bytes(store: RowStore, rows: Ints) -> Ints:
    """The most that the kept columns of each row take in Arrow's format, and an overhead.

    However rows are cut into pieces, these do not take more together: each row pays for its own bits of what
    is NULL, and for both of its ends.
    """
    sizes = np.full(len(rows), ROW_OVERHEAD, np.int64)
    if len(rows):
        for column in store.kept:
            sizes += 1 + value_bytes(store.take(column, rows))
    return sizes


def value_bytes(array: pa.Array) -> Ints | int:
    """The bytes of each value, NULL or not: of its width, or of its length and its ends."""
    kinds, type_ = pa.types, array.type
    if kinds.is_boolean(type_) or kinds.is_null(type_):
        return 1
    if kinds.is_primitive(type_) or kinds.is_decimal(type_) or kinds.is_fixed_size_binary(type_):
        return (int(type_.bit_width) + 7) // 8
    if kinds.is_struct(type_):
        total: Ints = np.zeros(len(array), np.int64)
        for part in array.flatten():
            total += 1 + value_bytes(part)
        return total
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_map(type_):
        return _nested(array)
    lengths: Ints = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths + _ENDS


def _nested(array: pa.Array) -> Ints:
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    lengths: Ints = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    items = value_bytes(array.flatten())
    # Items share the bytes that say which of them are NULL.
    own = lengths // 8 + 1 + _ENDS
    if isinstance(items, int):
        return lengths * items + own
    ends = np.concatenate([[0], np.cumsum(items)]).take(np.concatenate([[0], np.cumsum(lengths)]))
    sizes: Ints = np.diff(ends) + own
    return sizes
