"""64-bit hashes of byte strings, computed for all of them at once.

Every string is cut into words of 8 bytes, the last one filled up with zeros. The words of all strings
are scrambled together, and the words of each string are added up, each times a factor of its position::

    "equality join"   ->   "equality"    " join···"
                           scrambled·k₀ + scrambled·k₁      and the length
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparkshed.engine.arrays import AnyArray, Ints, counting

Hashes = npt.NDArray[np.uint64]

#: Words that are scrambled at a time, so that they stay in cache.
_BLOCK = 1 << 14
_STEP, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_ONE, _LAST_BIT = np.uint64(1), np.uint64(63)
#: Which bytes of a word belong to a string of which so many bytes are left.
_KEPT = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def hash_bytes(offsets: Ints, data: npt.NDArray[np.uint8]) -> Hashes:
    """A hash of each string `data[offsets[n]:offsets[n + 1]]`."""
    lengths = np.diff(offsets)
    counts = np.maximum((lengths + 7) >> 3, 1)
    ends: Ints = np.cumsum(counts)
    out = np.empty(len(lengths), np.uint64)
    begin = 0
    while begin < len(lengths):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(ends.searchsorted(before + _BLOCK, "right")))
        first, last = int(offsets[begin]), int(offsets[end])
        some = slice(begin, end)
        out[some] = _hash_block(offsets[some] - first, lengths[some], counts[some], data[first:last])
        begin = end
    return out


def _hash_block(starts: Ints, lengths: Ints, counts: Ints, data: npt.NDArray[np.uint8]) -> Hashes:
    words = np.zeros(len(data) // 8 + 2, np.uint64)
    words.view(np.uint8)[: len(data)] = data
    ends: Ints = np.cumsum(counts)
    firsts, numbers = ends - counts, counting(int(ends[-1]))
    found = _words_at(words, (starts - (firsts << 3)).repeat(counts) + (numbers << 3))
    found[ends - 1] &= _KEPT.take(lengths - ((counts - 1) << 3))
    found = _scrambled(found)
    factors = _scrambled(np.arange(int(counts.max()), dtype=np.uint64)) | _ONE
    if len(factors) > 1:
        found *= factors.take(numbers - firsts.repeat(counts))
        found = np.add.reduceat(found, firsts)
    else:
        found *= factors
    return _scrambled(found + lengths.view(np.uint64) * _STEP)


def _words_at(words: Hashes, places: Ints) -> Hashes:
    """The 8 bytes at any place, put together from two aligned words."""
    whole = places >> 3
    shift = ((places & 7) << 3).view(np.uint64)
    found: Hashes = words.take(whole) >> shift
    whole += 1
    found |= (words.take(whole) << _ONE) << (_LAST_BIT - shift)
    return found


def _scrambled(words: AnyArray) -> Hashes:
    """The finalizer of splitmix64: every bit of the input changes about half of the output."""
    out: Hashes = words + _STEP
    out ^= out >> np.uint64(30)
    out *= _FIRST
    out ^= out >> np.uint64(27)
    out *= _SECOND
    out ^= out >> np.uint64(31)
    return out
