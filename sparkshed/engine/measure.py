"""What rows take in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import Ints
from sparkshed.engine.store import RowStore
from sparkshed.planner.buffering import ROW_OVERHEAD


def row_bytes(store: RowStore, rows: Ints) -> Ints:
    """The Arrow bytes of the kept columns of each row, and an overhead."""
    sizes = np.full(len(rows), ROW_OVERHEAD, np.int64)
    if len(rows):
        for column in store.kept:
            sizes += value_bytes(store.take(column, rows))
    return sizes


def value_bytes(array: pa.Array) -> Ints | int:
    """The bytes of each value: of its width, or of its length and of what says where it begins."""
    kinds, type_ = pa.types, array.type
    if kinds.is_boolean(type_) or kinds.is_null(type_):
        return 1
    if kinds.is_primitive(type_) or kinds.is_decimal(type_) or kinds.is_fixed_size_binary(type_):
        return int(type_.bit_width) // 8
    if kinds.is_struct(type_):
        total: Ints = np.zeros(len(array), np.int64)
        for part in array.flatten():
            total += value_bytes(part)
        return total
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_map(type_):
        return _nested(array)
    lengths: Ints = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths + 4


def _nested(array: pa.Array) -> Ints:
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    lengths: Ints = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    items = value_bytes(array.flatten())
    if isinstance(items, int):
        return lengths * items + 4
    ends = np.concatenate([[0], np.cumsum(items)]).take(np.concatenate([[0], np.cumsum(lengths)]))
    sizes: Ints = np.diff(ends) + 4
    return sizes
