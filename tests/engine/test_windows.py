"""Basic windows: merged without sorting again, expired from the old end."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkshed.engine.index import HashIndex, SortedIndex, sorted_by
from sparkshed.engine.windows import BasicWindow, Windows

VALUES = np.random.default_rng(1).integers(0, 9, 1000)


class ByValue:
    """Sorts rows by a value; every seventh row has none and meets all probes."""

    def __init__(self, kind: type[SortedIndex]) -> None:
        self.key: Hashable = ("value", kind)
        self.kind = kind
        self.built: list[int] = []

    def index(self, window: BasicWindow) -> SortedIndex:
        self.built.append(len(window.rows))
        plain = window.rows % 7 != 0
        keys, rows = sorted_by(VALUES.take(window.rows[plain]), window.rows[plain])
        return self.kind(keys, np.concatenate([rows, window.rows[~plain]]))


@pytest.mark.parametrize("kind", [SortedIndex, HashIndex])
@given(cuts=st.lists(st.integers(1, 30), min_size=1, max_size=5), seed=st.integers(0, 1 << 30))
def test_a_merged_index_is_the_one_built_from_all_rows(kind: type, cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    windows, indexer, start = Windows(100), ByValue(kind), 0
    for count in cuts:
        times = np.sort(rng.integers(0, 40, count))
        more = Windows(100)
        more.add(start, times)
        windows.absorb(more)
        start += count
        windows.ordered[0].index(indexer)
    (window,) = windows.ordered
    assert window.times.tolist() == sorted(window.times.tolist())
    assert sorted(window.rows.tolist()) == list(range(start))
    found, fresh = window.index(indexer), ByValue(kind).index(window)
    assert found.keys.tolist() == fresh.keys.tolist()
    assert _by_key(found) == _by_key(fresh)
    if kind is HashIndex:
        assert (found.ends.tolist(), found.present.tolist()) == (fresh.ends.tolist(), fresh.present.tolist())
    assert indexer.built == cuts, "only new rows are sorted"


def _by_key(index: SortedIndex) -> list[tuple[int, int]]:
    keys = [*index.keys.tolist(), *[-1] * (len(index.rows) - len(index.keys))]
    return sorted(zip(keys, index.rows.tolist(), strict=True))


def test_other_windows_keep_their_indexes() -> None:
    windows, indexer = Windows(10), ByValue(SortedIndex)
    windows.add(0, np.arange(0, 50))
    for window in windows.ordered:
        window.index(indexer)
    windows.add(50, np.array([25, 49]))
    for window in windows.ordered:
        window.index(indexer)
    assert indexer.built == [10] * 5 + [1, 1]


def test_expiry_looks_at_no_more_than_what_it_drops() -> None:
    windows = Windows(10)
    windows.add(0, np.arange(0, 1000))
    seen = []

    class Watched(dict):
        def __getitem__(self, number: int) -> BasicWindow:
            seen.append(number)
            return super().__getitem__(number)

    windows._windows = Watched(windows._windows)
    assert windows.expire(25) == 20
    assert seen == [0, 1, 2]
    assert (windows.size, len(windows)) == (980, 98)
    assert windows.ordered[0].times[0] == 20
    assert windows.expire(25) == 0
