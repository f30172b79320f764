from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkshed.engine.operator import JoinOperator
from sparkshed.experiments.joins import camera_join
from sparkshed.workloads.cameras import (
    EPOCH,
    Cameras,
    aligned,
    camera_sql,
    camera_streams,
    camera_table,
    nonaligned,
)
from sparkshed.workloads.drifting import PAPER_RATES, drifting_keys, drifting_sets, paper_drift
from sparkshed.workloads.live import LiveCameras


def count_three_way(streams, window: float, eps: float) -> int:
    """Results of the three-way join, by brute force over the pairs that match."""
    a, b, c = streams
    near = (np.abs(a.x[:, None] - b.x) <= eps) & (np.abs(a.t[:, None] - b.t) <= window)
    total = 0
    for i, k in zip(*np.nonzero(near), strict=True):
        value = (np.abs(c.x - a.x[i]) <= eps) & (np.abs(c.x - b.x[k]) <= eps)
        total += int(np.sum(value & (np.abs(c.t - a.t[i]) <= window) & (np.abs(c.t - b.t[k]) <= window)))
    return total


def test_streams_are_repeatable_and_sorted():
    first, again = camera_streams(50, 10), camera_streams(50, 10)
    assert len(first) == 3
    for left, right in zip(first, again, strict=True):
        assert len(left.t) == 500
        assert np.array_equal(left.t, right.t) and np.array_equal(left.x, right.x)
        assert np.all(np.diff(left.t) >= 0)
        assert left.t.min() >= 0 and left.t.max() < 10
        assert left.x.min() >= 0 and left.x.max() < 1000


def test_times_are_drawn_before_the_noise():
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0, 10, 500))
    x = (20 * (t + 5) + 2 * rng.standard_normal(500)) % 1000
    stream = camera_streams(50, 10)[1]
    assert np.array_equal(stream.t, t)
    assert np.array_equal(stream.x, x)


def test_noise_does_not_change_the_times():
    calm = camera_streams(20, 10, tau=(0,), kappa=(0,), seeds=(4,))[0]
    wild = camera_streams(20, 10, tau=(0,), kappa=(50,), seeds=(4,))[0]
    assert np.array_equal(calm.t, wild.t)
    assert np.allclose(calm.x, 20 * calm.t % 1000)
    assert not np.allclose(calm.x, wild.x)


def test_the_lag_shows_in_the_matches():
    early, late = camera_streams(100, 60, tau=(0, 5), kappa=(1, 1), seeds=(0, 1))
    i, k = np.nonzero(np.abs(early.x[:, None] - late.x) <= 0.5)
    gap = early.t[i] - late.t[k]
    assert abs(np.median(gap[np.abs(gap) < 20]) - 5) < 0.2


def test_number_of_results_of_a_small_workload():
    # The number was counted with DuckDB. A change means that the streams are no longer the same.
    assert count_three_way(camera_streams(20, 30), 20, 1) == 939


def test_presets():
    assert nonaligned(3) == Cameras((0, 5, 15), (2, 2, 50))
    assert aligned(3) == Cameras((0, 0, 0), (2, 2, 50))
    for m in range(2, 7):
        lags = nonaligned(m).tau
        assert len(lags) == len(nonaligned(m).kappa) == m
        assert max(lags) - min(lags) < 20, "all lags must fit the default window"
        assert set(aligned(m).tau) == {0}


@pytest.mark.parametrize("m", [1, 7])
def test_presets_refuse_other_sizes(m):
    with pytest.raises(ValueError, match=f"m = {m}: presets exist for 2 to 6 streams"):
        nonaligned(m)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": (0, 1)}, "one entry per stream; found 2, 3 and 3"),
        ({"rate": 0}, "rate = 0: must be positive"),
        ({"seconds": -1}, "seconds = -1: must be positive"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        camera_streams(**{"rate": 10, "seconds": 10, **arguments})


def test_table_has_utc_microseconds_and_ids():
    stream = camera_streams(10, 5)[0]
    table = camera_table(stream)
    assert table.schema == pa.schema(
        [("ts", pa.timestamp("us", tz="UTC")), ("x", pa.float64()), ("id", pa.int64())]
    )
    offsets = [(ts - EPOCH).total_seconds() for ts in table["ts"].to_pylist()]
    assert np.allclose(offsets, stream.t, atol=1e-6)
    assert table["id"].to_pylist() == list(range(50))
    assert table["x"].to_pylist() == stream.x.tolist()


def test_sql_joins_every_pair():
    text = camera_sql(4, window_seconds=2.5, eps=0.5, hint="SHED(exact)")
    assert text.startswith("SELECT /*+ SHED(exact) */ c1.id AS id1")
    for i in range(1, 5):
        assert f"c{i}.ts + INTERVAL 2.5 SECONDS" in text
        for k in range(i + 1, 5):
            assert text.count(f"abs(c{i}.x - c{k}.x) <= 0.5") == 1
    assert "/*" not in camera_sql(3)


def test_sql_refuses_one_stream():
    with pytest.raises(ValueError, match="two or more"):
        camera_sql(1)


def test_spark_agrees_with_the_count(spark):
    streams = camera_streams(20, 30)
    for number, stream in enumerate(streams, 1):
        spark.createDataFrame(camera_table(stream)).createOrReplaceTempView(f"cam{number}")
    try:
        assert spark.sql(camera_sql(3)).count() == count_three_way(streams, 20, 1)
    finally:
        for number in (1, 2, 3):
            spark.catalog.dropTempView(f"cam{number}")


def test_live_cameras_know_the_truth(tmp_path):
    """Of a part of what they wrote, in files that hold all of it."""
    live = LiveCameras(tmp_path, Cameras((0, 1, 2), (2, 2, 20)), lambda _: 0.0)
    for second in range(12):
        live.write(1000.0 + second, 1001.0 + second, 40.0)
    tables = [pq.read_table(folder) for folder in live.folders]
    assert [table.num_rows for table in tables] == [480] * 3
    join = camera_join(3, window=4, basic=1)
    taken = [400, 440, 360]
    parts = {n: table.slice(0, count) for n, (table, count) in enumerate(zip(tables, taken, strict=True))}
    whole = sum(chunk.num_rows for chunk in JoinOperator(join.spec).process(parts))
    assert live.true_results(4, 1, 10_000, taken) == whole > 100
    assert live.true_results(4, 1, 200, taken) == pytest.approx(whole, rel=0.3)


def popular(items: list[list[int]], times: np.ndarray, start: float) -> int:
    """The most frequent item of the second that begins at a time."""
    inside = (times >= start) & (times < start + 1)
    return int(
        np.bincount(np.concatenate([own for own, here in zip(items, inside, strict=True) if here])).argmax()
    )


def test_the_most_popular_item_drifts_and_comes_back():
    drift = paper_drift(10, 1.5)
    assert (drift.period, drift.shifts) == (20, (0, 12.5))
    assert paper_drift(10, 1.5, aligned=True).shifts == (0, 0)
    for stream, table in enumerate(drifting_sets(drift, [(45, 200)])):
        times = np.array([(ts - EPOCH).total_seconds() for ts in table["ts"].to_pylist()])
        items = table["s"].to_pylist()
        assert all(len(set(own)) == len(own) and min(own) >= 1 and max(own) <= 100 for own in items)
        assert np.mean([len(own) for own in items]) == pytest.approx(5, abs=0.1)
        for start in (0.0, 7.0, 27.0, 43.0):
            # Within a second the place of the first rank moves by five items.
            expected = 100 * ((start - drift.shifts[stream]) % 20) / 20
            assert (popular(items, times, start) - 1 - expected) % 100 <= 5


def test_rates_of_drifting_streams_vary_and_equal_arguments_give_equal_streams():
    rates = [(4, 10), (2, 50), (3, 20)]
    first, second = drifting_sets(paper_drift(5, 0.8), rates, seeds=(3, 4))
    assert first.num_rows == second.num_rows == 200
    times = np.array([(ts - EPOCH).total_seconds() for ts in first["ts"].to_pylist()])
    assert np.all(np.diff(times) >= 0)
    assert np.histogram(times, [0, 4, 6, 9])[0].tolist() == [40, 100, 60]
    assert drifting_sets(paper_drift(5, 0.8), rates, seeds=(3, 4))[0] == first != second
    assert sum(seconds for seconds, _ in PAPER_RATES) == 130


def test_products_of_vectors_are_overlaps_of_sets():
    drift, rates = paper_drift(5, 0.8), [(4, 10)]
    sets, vectors = (drifting_sets(drift, rates, vectors=own) for own in (False, True))
    (a, b), (v, w) = ([own.column(1).to_pylist() for own in tables] for tables in (sets, vectors))
    overlaps = [[len(set(x) & set(y)) for y in b] for x in a]
    assert (np.array(v) @ np.array(w).T).tolist() == overlaps


def test_drifting_keys_are_single_items():
    first, _ = drifting_keys(paper_drift(5, 0.8, items=5000), [(4, 500)])
    keys = first["k"].to_numpy()
    assert keys.min() >= 1 and keys.max() <= 5000 and len(np.unique(keys)) > 500
