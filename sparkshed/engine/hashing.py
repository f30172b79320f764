"""64-bit hashes of byte strings, computed for all of them at once.

Every string is cut into words of 8 bytes, the last one filled up with zeros. The words of all strings
are scrambled together, and the words of each string are added up, each times a factor of its position::

    "equality join"   ->   "equality"    " join···"
                           scrambled·k₀ + scrambled·k₁      and the length
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparkshed.engine.arrays import AnyArray, Ints, counting, offsets_of

Hashes = npt.NDArray[np.uint64]

#: Words that are scrambled at a time.
_BLOCK = 1 << 20
_STEP, _FIRST, _SECOND = (
    np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_ONE = np.uint64(1)
_FIRST_PLACE = np.zeros(1, np.int64)
#: Which bytes of a word belong to a string of which so many bytes are left.
_KEPT = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def hash_bytes(offsets: Ints, data: npt.NDArray[np.uint8]) -> Hashes:
    """A hash of each string `data[offsets[n]:offsets[n + 1]]`."""
    lengths = np.diff(offsets)
    ends: Ints = np.cumsum(np.maximum((lengths + 7) >> 3, 1))
    out = np.empty(len(lengths), np.uint64)
    begin = 0
    while begin < len(lengths):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(ends.searchsorted(before + _BLOCK, "right")))
        first, last = int(offsets[begin]), int(offsets[end])
        out[begin:end] = _hash_block(offsets[begin:end] - first, lengths[begin:end], data[first:last])
        begin = end
    return out


def _hash_block(starts: Ints, lengths: Ints, data: npt.NDArray[np.uint8]) -> Hashes:
    words = np.zeros(len(data) // 8 + 2, np.uint64)
    words.view(np.uint8)[: len(data)] = data
    if not len(lengths) or int(lengths.max()) <= 8:
        sums = _scrambled(_words_at(words, starts, lengths)) * _factor(_FIRST_PLACE)
    else:
        counts = np.maximum((lengths + 7) >> 3, 1)
        firsts = offsets_of(counts)
        owners: Ints = counting(len(counts)).repeat(counts)
        position: Ints = counting(int(firsts[-1])) - firsts.take(owners)
        inside = position << 3
        found = _scrambled(_words_at(words, starts.take(owners) + inside, lengths.take(owners) - inside))
        found *= _factor(position)
        sums = np.add.reduceat(found, firsts[:-1])
    return _scrambled(sums + lengths.view(np.uint64) * _STEP)


def _words_at(words: Hashes, places: Ints, left: Ints) -> Hashes:
    """The 8 bytes at any place, put together from two aligned words, without what is not left."""
    whole = places >> 3
    shift = ((places & 7) << 3).view(np.uint64)
    found: Hashes = words.take(whole) >> shift
    found |= (words.take(whole + 1) << _ONE) << (np.uint64(63) - shift)
    found &= _KEPT.take(np.minimum(left, 8))
    return found


def _factor(position: Ints) -> Hashes:
    return _scrambled(position.view(np.uint64)) | _ONE


def _scrambled(words: AnyArray) -> Hashes:
    """The finalizer of splitmix64: every bit of the input changes about half of the output."""
    out: Hashes = words + _STEP
    out ^= out >> np.uint64(30)
    out *= _FIRST
    out ^= out >> np.uint64(27)
    out *= _SECOND
    out ^= out >> np.uint64(31)
    return out
