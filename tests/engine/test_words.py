"""The dictionary of byte strings against Python's own dict and sort."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkshed.engine import hashing
from sparkshed.engine.hashing import hash_bytes
from sparkshed.engine.words import Numbers, Words

#: Equal prefixes, embedded and trailing NULs, invalid UTF-8, lengths around multiples of 8.
AWKWARD = [
    b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"aa", b"\xff", b"\xc3\xa4", b"\xc3", b"\x80abc",
    *[b"x" * n for n in (7, 8, 9, 15, 16, 17, 64)], b"x" * 16 + b"\0", b"y" * 5000, b"y" * 4999 + b"z",
]  # fmt: skip
WORDS = st.sampled_from(AWKWARD) | st.binary(max_size=20) | st.text(max_size=6).map(str.encode)
BATCHES = st.lists(st.lists(st.none() | WORDS, max_size=12), max_size=6)


def same(offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The worst hash."""
    return np.zeros(len(offsets) - 1, np.uint64)


def few(offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
    """A hash with four values, among them the smallest and the largest."""
    return np.array([0, 1, 5, (1 << 64) - 1], np.uint64).take(np.diff(offsets) % 4)


Hashed = Callable[[np.ndarray, np.ndarray], np.ndarray]
HASHES = pytest.mark.parametrize("hashed", [hash_bytes, same, few])


@HASHES
@given(batches=BATCHES)
@settings(deadline=None)
def test_codes_are_those_of_a_dict(hashed: Hashed, batches: list[list[bytes | None]]) -> None:
    words, known = Words(hashed), dict[bytes, int]()
    for batch in batches:
        for word in batch:
            if word is not None:
                known.setdefault(word, len(known))
        codes = words.encode(pa.array(batch, pa.binary()))
        assert codes.dtype == np.int64 and len(codes) == len(batch)
        assert [c for c, w in zip(codes, batch, strict=True) if w is not None] == [
            known[word] for word in batch if word is not None
        ]
        assert len(words) == len(known)
        assert words.stored.to_pylist() == list(known)


@HASHES
@given(batches=BATCHES)
@settings(deadline=None)
def test_ranks_are_those_of_sorting(hashed: Hashed, batches: list[list[bytes | None]]) -> None:
    words = Words(hashed)
    for batch in batches:
        words.encode(pa.array(batch, pa.large_binary()))
        stored = words.stored.to_pylist()
        assert words.order.tolist() == sorted(range(len(stored)), key=stored.__getitem__)
        assert words.ranks.take(words.order).tolist() == list(range(len(stored)))


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["b", "ä", None]),
        pa.array(["b", "ä", None], pa.large_string()),
        pa.array(["x", "b", "ä", None, "y"]).slice(1, 3),
    ],
)
def test_any_layout_of_arrow(array: pa.Array) -> None:
    words = Words()
    words.encode(pa.array([b"\xc3\xa4", b"b"]))
    assert words.encode(array).tolist()[:2] == [1, 0]
    assert len(words) == 2


def test_nothing_but_nulls() -> None:
    words = Words()
    assert words.encode(pa.array([None, None], pa.string())).tolist() == [0, 0]
    assert words.encode(pa.array([], pa.string())).tolist() == []
    assert len(words) == 0 and words.ranks.tolist() == []


def hashes(words: list[bytes]) -> list[int]:
    offsets = np.cumsum([0, *map(len, words)])
    return hash_bytes(offsets, np.frombuffer(b"".join(words), np.uint8)).tolist()


@given(st.lists(WORDS, min_size=1))
def test_a_hash_does_not_depend_on_the_neighbours(words: list[bytes]) -> None:
    assert hashes(words) == [hashes([word])[0] for word in words]


def test_a_hash_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = hashes(AWKWARD)
    assert len(set(expected)) == len(AWKWARD)
    monkeypatch.setattr(hashing, "_BLOCK", 3)
    assert hashes(AWKWARD) == expected


def test_hashes_differ() -> None:
    words = [b"%d" % n for n in range(20_000)] + [b"\0" * n for n in range(200)]
    words += [bytes(i) + b"\1" + bytes(40 - i) for i in range(40)]
    found = hashes(words)
    assert len(set(found)) == len(words)
    # Also the halves, by which hash tables spread them.
    assert len({h >> 32 for h in found}) > len(words) - 20
    assert len({h & 0xFFFFFFFF for h in found}) > len(words) - 20


def test_many_batches_cost_as_much_as_their_words() -> None:
    """Runs stay few, and every one is at least twice as long as the next."""
    words = Words()
    for start in range(0, 5000, 50):
        words.encode(pa.array([str(n) for n in range(start, start + 50)]))
    lengths = [len(run.keys) for run in words._runs]
    assert sum(lengths) == 5000
    assert all(long >= 2 * short for long, short in zip(lengths, lengths[1:], strict=False))
    assert words.encode(pa.array(["0", "4999", "777"])).tolist() == [0, 4999, 777]


NUMBERS = st.none() | st.integers(-3, 3) | st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.lists(NUMBERS, max_size=10), max_size=6))
def test_numbers_are_those_of_a_dict(batches: list[list[int | None]]) -> None:
    numbers, known = Numbers(), dict[int | None, int]()
    for batch in batches:
        expected = [known.setdefault(number, len(known)) for number in batch]
        assert numbers.encode(pa.array(batch, pa.int64())).tolist() == expected
        assert len(numbers) == len(known)
