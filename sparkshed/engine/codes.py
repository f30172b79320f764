"""Equality keys as 64-bit integers: equal codes if and only if Spark calls the values equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints, Vector, both_valid
from sparkshed.engine.decode import COMPACT, decode, freeze, validity
from sparkshed.sql.types import FRACTIONAL, decimal_of, is_whole

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_NULL = np.uint64(0xD6E8FEB86659FD93)


class Codebook:
    """Codes for values that are not 64-bit numbers, the same for all streams and batches."""

    def __init__(self) -> None:
        """Start empty."""
        self._codes: dict[Any, int] = {}
        self._items: dict[str, dict[int | None, int]] = {}

    def __len__(self) -> int:
        """How many values have a code."""
        return len(self._codes) + sum(map(len, self._items.values()))

    def clear(self) -> None:
        """Forget all codes; columns encoded before must be encoded again."""
        self._codes.clear()
        self._items.clear()

    def encode(self, array: pa.Array, type_: str) -> Vector:
        """Codes of a column."""
        if type_ in FRACTIONAL:
            floats = decode(array, type_)
            values = floats.values.astype(np.float64) + 0.0
            values[np.isnan(values)] = np.nan
            return Vector(values.view(np.int64), floats.valid)
        decimal = decimal_of(type_)
        if type_ == "boolean" or is_whole(type_) or (decimal is not None and decimal[0] <= COMPACT):
            direct = decode(array, type_)
            return Vector(direct.values.astype(np.int64, copy=False), direct.valid)
        return Vector(self._look_up(array), validity(array))

    def items(self, array: pa.Array, type_: str) -> npt.NDArray[np.int32]:
        """Dense codes 0, 1, 2, … of elements, among all elements of the type; NULL has a code too."""
        values, valid = self.encode(array, type_)
        known = self._items.setdefault(type_, {})
        encoded = pa.array(values, mask=None if valid is None else ~valid).dictionary_encode("encode")
        words = encoded.dictionary.to_pylist()
        table = np.fromiter((known.setdefault(v, len(known)) for v in words), np.int32, len(words))
        places: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
        return table.take(places)

    def _look_up(self, array: pa.Array) -> Ints:
        codes = self._codes
        if pa.types.is_nested(array.type):
            frozen = map(freeze, array.to_pylist())
            return np.fromiter((codes.setdefault(v, len(codes)) for v in frozen), np.int64, len(array))
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            array = array.cast(pa.large_binary())  # Spark's strings need not be valid UTF-8
        encoded = array.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        table = np.fromiter((codes.setdefault(v, len(codes)) for v in words), np.int64, len(words))
        if not len(table):
            return np.zeros(len(array), np.int64)
        places: Ints = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return table.take(places)


def mix(columns: list[Vector], null_safe: list[bool]) -> Vector:
    """One hash for several key columns; valid where no `=` column is NULL.

    Equal keys have equal hashes, so candidates are complete; the columns are compared afterwards.
    """
    hashed = np.zeros(len(columns[0].values), np.uint64)
    alive: Bools | None = None
    for column, safe in zip(columns, null_safe, strict=True):
        word = column.values.view(np.uint64)
        if column.valid is not None:
            if safe:
                word = np.where(column.valid, word, _NULL)
            else:
                alive = both_valid(alive, column.valid)
        hashed = (hashed ^ word) * _MULTIPLY
        hashed ^= hashed >> _FOLD
    return Vector(hashed.view(np.int64), alive)
