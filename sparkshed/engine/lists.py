"""Arrays and maps as numpy: all elements of a column in one array, cut into rows by offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import AnyArray, Bools, Ints, offsets_of
from sparkshed.engine.codes import Codebook
from sparkshed.engine.decode import decode, dtype_of, normalise, validity
from sparkshed.engine.growing import Growing, Mask
from sparkshed.sql.types import element_of, entry_of

Doubles = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


class Lists(NamedTuple):
    """Lists of numbers, row after row: row n has `values[offsets[n]:offsets[n + 1]]`.

    `valid` is False where the row is NULL; such a row has no values. `weights` belong to the keys of
    a map. `holes` marks vectors with a NULL element.
    """

    offsets: Ints
    values: AnyArray
    valid: Bools | None = None
    weights: Doubles | None = None
    holes: Bools | None = None


class ListLane:
    """Lists that grow with their store."""

    def __init__(self, empty: Lists) -> None:
        """Start with no rows; `empty` tells the types."""
        self._offsets = Growing(empty.offsets)
        self._values = Growing(empty.values)
        self._valid = Mask(usual=True)
        self._weights = None if empty.weights is None else Growing(empty.weights)
        self._holes = Mask(usual=False)
        self.size = 0

    def extend(self, more: Lists) -> None:
        """Append the next rows."""
        count = len(more.offsets) - 1
        self._offsets.extend(more.offsets[1:] + self._offsets.values[-1])
        self._values.extend(more.values)
        self._valid.extend(more.valid, count)
        if self._weights is not None and more.weights is not None:
            self._weights.extend(more.weights)
        self._holes.extend(more.holes, count)
        self.size += count

    @property
    def lists(self) -> Lists:
        """All rows."""
        weights = None if self._weights is None else self._weights.values
        return Lists(self._offsets.values, self._values.values, self._valid.flags, weights, self._holes.flags)


def sets_of(array: pa.Array, type_: str, codebook: Codebook) -> Lists:
    """Codes of the distinct elements of each array, ascending; NULL is an element like any other."""
    element = element_of(type_)
    offsets, child = _elements(array)
    codes = codebook.items(normalise(child, element), element)
    return Lists(*_distinct(offsets, codes), validity(array))


def maps_of(array: pa.Array, type_: str, codebook: Codebook) -> Lists:
    """Codes of the keys of each map in the map's order, and their weights.

    Entries without a value are left out: a product with NULL adds nothing to an inner product, not
    even NaN.
    """
    key, value = entry_of(type_)
    offsets, keys, items = _entries(array)
    codes = codebook.items(normalise(keys, key), key)
    weights, present = decode(normalise(items, value), value)
    if present is not None:
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(present)])
        offsets, codes, weights = before.take(offsets), codes[present], weights[present]
    return Lists(offsets, codes, validity(array), weights.astype(np.float64, copy=False))


def vectors_of(array: pa.Array, type_: str, codebook: Codebook) -> Lists:
    """Elements of each array as float32 or float64, 0.0 where they are NULL."""
    element = element_of(type_)
    offsets, child = _elements(array)
    values, present = decode(normalise(child, element), element)
    holes: Bools | None = None
    if present is not None:
        holes = np.zeros(len(array), np.bool_)
        holes[offsets.searchsorted(np.flatnonzero(~present), "right") - 1] = True
    return Lists(offsets, values, validity(array), None, holes)


#: The kinds of lists, by name.
FORMS: dict[str, Callable[[pa.Array, str, Codebook], Lists]] = {
    "sets": sets_of,
    "maps": maps_of,
    "vectors": vectors_of,
}


def empty_lists(kind: str, type_: str) -> Lists:
    """No rows, in the numpy types that the Spark type asks for."""
    values = np.empty(0, dtype_of(element_of(type_)) if kind == "vectors" else np.int32)
    return Lists(np.zeros(1, np.int64), values, None, np.empty(0) if kind == "maps" else None)


def _elements(array: pa.Array) -> tuple[Ints, pa.Array]:
    """Offsets and elements of an array column, whatever layout Arrow uses, without those of NULL rows."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    return offsets_of(lengths), array.flatten()


def _entries(array: pa.MapArray) -> tuple[Ints, pa.Array, pa.Array]:
    """Offsets, keys and values of a map column; a slice shares the entries of the whole."""
    bounds = array.offsets.to_numpy(zero_copy_only=False)
    first, last = int(bounds[0]), int(bounds[-1])
    lengths = np.diff(bounds)
    keys, items = array.keys, array.items
    valid = validity(array)
    if valid is not None and lengths[~valid].any():
        kept = pa.array(first + np.flatnonzero(np.repeat(valid, lengths)))
        return offsets_of(lengths * valid), keys.take(kept), items.take(kept)
    return offsets_of(lengths), keys.slice(first, last - first), items.slice(first, last - first)


def _distinct(offsets: Ints, codes: Codes) -> tuple[Ints, Codes]:
    """Sort each row and drop what it repeats, by one sort of (row, code) pairs."""
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    pairs = (rows << 32) | codes
    rises = pairs[1:] > pairs[:-1]
    if rises.all():
        return offsets, codes
    pairs.sort()
    first = np.ones(len(pairs), np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
    pairs = pairs[first]
    lengths = np.bincount(pairs >> 32, minlength=len(offsets) - 1)
    return offsets_of(lengths), pairs.astype(np.int32)
