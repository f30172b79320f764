"""A dictionary of byte strings that grows: a code for each word, and the words in their order.

No word is ever a Python object. A batch is reduced to its distinct words by Arrow; their hashes are
searched for in sorted arrays, and a word that is found there is compared with the stored one byte by
byte, so that a hash shared by several words costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import AnyArray, Bools, Ints, merge_places
from sparkshed.engine.growing import Growing
from sparkshed.engine.hashing import Hashes, hash_bytes

Bytes = npt.NDArray[np.uint8]


class Run(NamedTuple):
    """Keys in ascending order, each with a number; a key may come several times."""

    keys: AnyArray
    numbers: Ints


class Runs:
    """Sorted runs, each at least twice as long as the next: few to search, and each key merged rarely."""

    def __init__(self) -> None:
        """Start empty."""
        self._runs: list[Run] = []

    def __iter__(self) -> Iterator[Run]:
        """The runs, the longest first."""
        return iter(self._runs)

    def add(self, keys: AnyArray, numbers: Ints) -> None:
        """Add keys in ascending order."""
        run = Run(keys, numbers)
        while self._runs and len(self._runs[-1].keys) < 2 * len(run.keys):
            run = _merged(self._runs.pop(), run)
        if len(run.keys):
            self._runs.append(run)


def _merged(first: Run, second: Run) -> Run:
    here, there = merge_places(first.keys, second.keys)
    size = len(here) + len(there)
    keys, numbers = np.empty(size, first.keys.dtype), np.empty(size, np.int64)
    keys[here], keys[there] = first.keys, second.keys
    numbers[here], numbers[there] = first.numbers, second.numbers
    return Run(keys, numbers)


class Words:
    """Codes 0, 1, 2, … for byte strings, in the order in which they are met first."""

    def __init__(self, hashed: Callable[[Ints, Bytes], Hashes] = hash_bytes) -> None:
        """Start empty. Any hash will do; one that is equal for many words makes it slow."""
        self._hashed = hashed
        self._runs = Runs()
        self._offsets = Growing(np.zeros(1, np.int64))
        self._data = Growing(np.empty(0, np.uint8))
        self._order: Ints = np.empty(0, np.int64)
        self._ranks: Ints = np.empty(0, np.int64)

    def __len__(self) -> int:
        """How many words there are."""
        return len(self._offsets.values) - 1

    @property
    def stored(self) -> pa.LargeBinaryArray:
        """All words by their codes."""
        return binary_array(self._offsets.values, self._data.values)

    def encode(self, array: pa.Array) -> Ints:
        """The code of each word of a string or binary array; any number stands at NULLs."""
        encoded = array.cast(pa.large_binary()).dictionary_encode()  # Spark's strings need not be UTF-8
        codes = self._look_up(encoded.dictionary)
        if not len(codes):
            return np.zeros(len(array), np.int64)
        places: Ints = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return codes.take(places)

    def _look_up(self, words: pa.LargeBinaryArray) -> Ints:
        """Codes of different words; new words are added."""
        offsets, data = _parts(words)
        hashes = self._hashed(offsets, data)
        order = hashes.argsort()
        hashes = hashes.take(order)
        found = self._find(words, order, hashes)
        new = found < 0
        codes = np.empty(len(words), np.int64)
        codes[order] = found
        places = np.flatnonzero(codes < 0)
        if len(places):
            codes[places] = np.arange(len(self), len(self) + len(places))
            self._runs.add(hashes[new], codes.take(order[new]))
            self._store(*(_parts(_taken(words, places)) if len(places) < len(words) else (offsets, data)))
        return codes

    def _find(self, words: pa.LargeBinaryArray, order: Ints, hashes: Hashes) -> Ints:
        """Codes of the words `order` with ascending hashes, -1 for those that are new."""
        codes = np.full(len(hashes), -1)
        stored = self.stored
        for run in self._runs:
            open_ = np.flatnonzero(codes < 0)
            places: Ints = run.keys.searchsorted(hashes.take(open_))
            while len(open_):
                alive = run.keys.take(places, mode="clip") == hashes.take(open_)
                alive &= places < len(run.keys)
                open_, places = open_[alive], places[alive]
                numbers = run.numbers.take(places)
                same = _truth(pc.equal(_taken(stored, numbers), _taken(words, order.take(open_))))
                codes[open_[same]] = numbers[same]
                open_, places = open_[~same], places[~same] + 1  # another word with this hash
        return codes

    def _store(self, offsets: Ints, data: Bytes) -> None:
        self._offsets.extend(offsets[1:] - offsets[0] + len(self._data.values))
        self._data.extend(data[offsets[0] : offsets[-1]])

    @property
    def ranks(self) -> Ints:
        """By code, the place of the word among all words in the order of their bytes."""
        self._sort()
        return self._ranks

    @property
    def order(self) -> Ints:
        """The codes of all words in the order of their bytes."""
        self._sort()
        return self._order

    def _sort(self) -> None:
        """Sort the words that came since the last time, and merge them in."""
        known = len(self._order)
        if known == len(self):
            return
        stored = self.stored
        fresh: Ints = known + pc.array_sort_indices(stored.slice(known)).to_numpy().astype(np.int64)
        later = self._places(stored, fresh) + np.arange(len(fresh))
        order = np.empty(len(self), np.int64)
        kept = np.ones(len(self), np.bool_)
        kept[later] = False
        order[later], order[kept] = fresh, self._order
        self._order, self._ranks = order, np.empty(len(self), np.int64)
        self._ranks[order] = np.arange(len(self))

    def _places(self, stored: pa.LargeBinaryArray, codes: Ints) -> Ints:
        """How many sorted words come before each of the given ones: one binary search for all."""
        low, high = np.zeros(len(codes), np.int64), np.full(len(codes), len(self._order))
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low.take(open_) + high.take(open_)) >> 1
            words = _taken(stored, codes.take(open_))
            before = _truth(pc.less(_taken(stored, self._order.take(middle)), words))
            low[open_[before]] = middle[before] + 1
            high[open_[~before]] = middle[~before]
            open_ = open_[low.take(open_) < high.take(open_)]
        return low


class Numbers:
    """Codes 0, 1, 2, … for 64-bit numbers and NULL, in the order in which they are met first."""

    def __init__(self) -> None:
        """Start empty."""
        self._runs = Runs()
        self._null = -1
        self._size = 0

    def __len__(self) -> int:
        """How many numbers have a code."""
        return self._size

    def encode(self, array: pa.Array) -> Ints:
        """The code of each number of an int64 array."""
        encoded = array.dictionary_encode("encode")
        codes = self._look_up(encoded.dictionary)
        places: Ints = encoded.indices.to_numpy(zero_copy_only=False)
        return codes.take(places)

    def _look_up(self, numbers: pa.Int64Array) -> Ints:
        missing: Bools = numbers.is_null().to_numpy(zero_copy_only=False)
        values: Ints = numbers.fill_null(0).to_numpy(zero_copy_only=False)
        order = np.flatnonzero(~missing)
        order = order.take(values.take(order).argsort(kind="stable"))
        keys = values.take(order)
        found = np.full(len(keys), -1)
        for run in self._runs:
            places = np.minimum(run.keys.searchsorted(keys), len(run.keys) - 1)
            same = run.keys.take(places) == keys
            found[same] = run.numbers.take(places[same])
        codes = np.empty(len(values), np.int64)
        codes[order], codes[missing] = found, self._null
        new = np.flatnonzero(codes < 0)
        codes[new] = np.arange(self._size, self._size + len(new))
        self._size += len(new)
        fresh = found < 0
        self._runs.add(keys[fresh], codes.take(order[fresh]))
        if missing.any():
            self._null = int(codes[missing][0])
        return codes


def binary_array(offsets: Ints, data: AnyArray) -> pa.LargeBinaryArray:
    """Byte strings `data[offsets[n]:offsets[n + 1]]`, not copied."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _parts(array: pa.LargeBinaryArray) -> tuple[Ints, Bytes]:
    """Offsets and bytes of an array without NULLs."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(array) + 1, 8 * array.offset) if len(array) else _NONE
    return bounds, np.frombuffer(data if data is not None else b"", np.uint8)


_NONE = np.zeros(1, np.int64)


def _taken(array: pa.Array, rows: Ints) -> pa.Array:
    return array.take(pa.array(rows))


def _truth(array: pa.BooleanArray) -> Bools:
    truth: Bools = array.to_numpy(zero_copy_only=False)
    return truth
