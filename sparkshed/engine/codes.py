"""Values that are no 64-bit numbers as 64-bit integers: equal codes if and only if Spark calls them equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import Bools, Ints, Vector, both_valid, offsets_of
from sparkshed.engine.decode import decode, is_text, normalise, validity
from sparkshed.engine.wide import WIDE
from sparkshed.engine.words import Numbers, Words, binary_array
from sparkshed.sql.expr import Apply, Call, Expr, Lit
from sparkshed.sql.types import FRACTIONAL, is_evaluated

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_ORDERING = ("<", "<=", ">", ">=", "greatest", "least")


class Codebook:
    """Codes for values that are not 64-bit numbers, the same for all streams and batches.

    Words that conditions compute with have a dictionary of their own. Rows keep their codes, which never
    change; conditions compare *ranks*, which do when words arrive. So whoever evaluates a condition has
    all rows encoded first (:meth:`sparkshed.engine.store.RowStore.values`), and keeps no ranks::

        row ──▶ code 2 ──▶ rank 0      words by code: "b" "c" "a"     ranks: 1 2 0
    """

    def __init__(self, conditions: Iterable[Expr] = ()) -> None:
        """Start with the constants of the given conditions."""
        self._literals: dict[bytes, int] = {}
        self._ordered = False
        self.clear()
        self.learn(conditions)

    def __len__(self) -> int:
        """How many values have a code."""
        return len(self._keys) + len(self._texts) + sum(map(len, self._items.values()))

    def clear(self) -> None:
        """Forget all codes but those of constants; columns encoded before must be encoded again."""
        self._keys = Words()
        self._texts = Words()
        self._items: dict[str, Numbers] = {}
        self._learn_words(self._literals)

    # Words in conditions -----------------------------------------------------------------------

    def learn(self, conditions: Iterable[Expr]) -> None:
        """Take in the words of conditions before any of them is evaluated."""
        words: list[bytes] = []
        for condition in conditions:
            self._visit(condition, words)
        self._learn_words(words)

    def _visit(self, expr: Expr, words: list[bytes]) -> None:
        if isinstance(expr, Lit) and is_text(expr.type) and expr.value is not None:
            words.append(_bytes_of(expr))
        if isinstance(expr, Call) and expr.op in _ORDERING:
            self._ordered |= any(is_text(arg.type) for arg in expr.args)
        if isinstance(expr, (Call, Apply)):
            for arg in expr.args:
                self._visit(arg, words)

    def _learn_words(self, words: Iterable[bytes]) -> None:
        different = list(dict.fromkeys(words))
        if different:
            codes = self._texts.encode(pa.array(different, pa.large_binary()))
            self._literals.update(zip(different, codes.tolist(), strict=True))

    def values(self, array: pa.Array, type_: str) -> Vector:
        """A column as rows keep it: codes of words and of nested values, and the values of all else."""
        if is_text(type_):
            return Vector(self._texts.encode(array), validity(array))
        return decode(array, type_) if is_evaluated(type_) else self.encode(array, type_)

    def ranked(self, codes: Ints) -> Ints:
        """What conditions compare instead of words: their ranks, or the codes if order does not matter."""
        return self._texts.ranks.take(codes) if self._ordered and len(self._texts) else codes

    def literal(self, lit: Lit) -> Ints:
        """A word of a condition, in the form that conditions compare."""
        return self.ranked(np.array([self._literals[_bytes_of(lit)]]))

    def words(self, ranked: Ints, missing: Bools | None) -> pa.LargeBinaryArray:
        """Words in the form that conditions compare, spelled out."""
        if missing is not None:
            ranked = np.where(missing, 0, ranked)
        codes = self._texts.order.take(ranked) if self._ordered and len(self._texts) else ranked
        return self._texts.stored.take(pa.array(codes, mask=missing))

    # Equality keys -----------------------------------------------------------------------------

    def encode(self, array: pa.Array, type_: str) -> Vector:
        """Codes of a column."""
        if is_text(type_):
            return Vector(self._keys.encode(array), validity(array))
        if is_evaluated(type_):
            return self._plain(decode(array, type_), type_)
        return self._any(array)

    def _plain(self, vector: Vector, type_: str) -> Vector:
        values, valid = vector
        if type_ in FRACTIONAL:
            doubles = values.astype(np.float64) + 0.0
            doubles[np.isnan(doubles)] = np.nan
            return Vector(doubles.view(np.int64), valid)
        if values.dtype == WIDE:
            return Vector(self._rows(values.view(np.int64).reshape(-1, 2)), valid)
        return Vector(values.astype(np.int64, copy=False), valid)

    def _any(self, array: pa.Array) -> Vector:
        """Codes of values of any type: of nested ones by the codes of their parts."""
        kinds, type_ = pa.types, array.type
        if kinds.is_dictionary(type_):
            return self._any(array.dictionary_decode())
        if kinds.is_struct(type_):
            parts = [_paired(self._any(part)) for part in array.flatten()]
            rows = np.concatenate(parts, axis=1) if parts else np.zeros((len(array), 1), np.int64)
            return Vector(self._rows(rows), validity(array))
        if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
            lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
            items = _paired(self._any(array.flatten()))
            return Vector(self._pieces(16 * offsets_of(lengths), items), validity(array))
        if kinds.is_time(type_):
            array = array.cast(pa.time64("ns")).view(pa.int64())
        name = _name_of(array.type)
        return self.encode(normalise(array, name), name)

    def _rows(self, rows: npt.NDArray[np.int64]) -> Ints:
        """Codes of the rows of a matrix."""
        count, width = rows.shape
        bounds = np.arange(0, 8 * width * count + 1, 8 * width)
        return self._pieces(bounds, np.ascontiguousarray(rows))

    def _pieces(self, bounds: Ints, numbers: npt.NDArray[np.int64]) -> Ints:
        """Codes of pieces of an array, cut at the given bytes."""
        return self._keys.encode(binary_array(bounds, numbers.ravel().view(np.uint8)))

    def items(self, array: pa.Array, type_: str) -> npt.NDArray[np.int32]:
        """Dense codes 0, 1, 2, … of elements, among all elements of the type; NULL has a code too."""
        values, valid = self.encode(array, type_)
        numbers = self._items.setdefault(type_, Numbers())
        return numbers.encode(pa.array(values, mask=None if valid is None else ~valid)).astype(np.int32)


def _bytes_of(lit: Lit) -> bytes:
    return lit.value.encode() if isinstance(lit.value, str) else bytes(lit.value)  # type: ignore[call-overload]


def _paired(vector: Vector) -> npt.NDArray[np.int64]:
    """Codes beside their validity, so that NULL differs from any value and equals NULL."""
    pairs = np.ones((len(vector.values), 2), np.int64)
    pairs[:, 0] = vector.values
    if vector.valid is not None:
        pairs[~vector.valid] = 0
    return pairs


#: Spark types whose values are encoded as those of plain Arrow types.
_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_floating, "double"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_date, "date"),
    (pa.types.is_duration, "interval day to second"),
    (pa.types.is_null, "void"),
)


def _name_of(type_: pa.DataType) -> str:
    """A Spark type whose values are encoded as those of a plain Arrow type."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_nested(type_):
        msg = f"values of the Arrow type {type_} cannot be compared"
        raise TypeError(msg)
    return next((name for is_kind, name in _NAMES if is_kind(type_)), "binary")


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
