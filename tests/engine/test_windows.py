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


SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@given(cuts=SIZES, share=st.floats(0.01, 1), seed=st.integers(0, 99))
def test_a_thinned_window_is_evenly_spread_and_grows_with_its_rows(cuts, share, seed) -> None:
    windows, start, before = Windows(1000, seed), 0, np.empty(0, np.int64)
    for count in cuts:
        windows.add(start, np.arange(start, start + count))
        start += count
        thin = windows.thin(share)
        rows = np.concatenate([w.rows for w in thin.ordered]) if len(thin) else np.empty(0, np.int64)
        assert thin.size == len(rows) == len(thin.times)
        assert abs(len(rows) - share * start) <= 1
        assert (np.diff(rows) <= np.ceil(1 / share) + 1e-9).all()
        assert rows[: len(before)].tolist() == before.tolist()
        before = rows
    assert windows.thin(1.0) is windows


def test_every_row_is_as_likely_in_a_thinned_window() -> None:
    seen = np.zeros(100)
    for seed in range(400):
        windows = Windows(1000, seed)
        windows.add(0, np.arange(100))
        seen[windows.thin(0.3).ordered[0].rows] += 1
    # 400 draws with probability 0.3: four standard deviations are 37.
    assert np.abs(seen - 120).max() < 37


def test_thinned_windows_expire_and_are_thinned_anew_when_the_share_changes() -> None:
    windows = Windows(10, 3)
    windows.add(0, np.arange(100))
    assert windows.thin(0.5).size == pytest.approx(50, abs=10)
    windows.expire(50)
    assert windows.thin(0.5).times.min() >= 50
    assert windows.thin(0.2).coarse(4).size == windows.thin(0.2).size < 20
