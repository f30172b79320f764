"""Windows of the last n rows: a naive join row by row, whatever the cuts; and what is shed of them."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sparkshed.engine import host as memory
from sparkshed.engine import steering
from sparkshed.engine.group import join_group
from sparkshed.engine.keeping import Manifest, MemoryStore
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.dual import Dual
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.engine.waiting import pushed, standing
from sparkshed.experiments.joins import keyed_join
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import PROBE, UPDATE
from sparkshed.planner.shedding import Shedding
from sparkshed.planner.streaming import Hosts, StreamingPlan

ORDERS = ((1,), (0,))


def strategy(keep=1.0, rear=0.0, seed=0, **more):
    configuration = Configuration(ORDERS, keep=(keep, keep), rear=(rear, rear))
    return Dual(configuration, np.random.default_rng(seed), **more)


def random_rows(rng, count, values=5, late=3, nulls=0.0):
    """Rows (stream, time, key, id) in the order in which they are cut into micro-batches."""
    times = np.arange(count) + rng.integers(-late, late + 1, count)
    keys = [None if rng.random() < nulls else int(k) for k in rng.integers(0, values, count)]
    streams = (rng.random(count) < rng.choice([0.3, 0.5, 0.7])).astype(int)
    return list(zip(streams.tolist(), times.tolist(), keys, range(count), strict=True))


def cuts(rng, rows, most):
    batches, start = [], 0
    while start < len(rows):
        stop = start + int(rng.integers(1, most + 1))
        batches.append(rows[start:stop])
        start = stop
    return batches


def tables(batch):
    found = {}
    for stream in (0, 1):
        own = [row for row in batch if row[0] == stream]
        if own:
            times = pa.array([row[1] for row in own], pa.int64()).cast(pa.timestamp("us", "UTC"))
            keys = pa.array([row[2] for row in own], pa.int64())
            found[stream] = pa.table({"ts": times, "k": keys, "id": [row[3] for row in own]})
    return found


def arrivals(batches):
    """All rows in the order of arrival: batch, time, stream, position."""
    return [row for batch in batches for row in sorted(batch, key=lambda row: (row[1], row[0]))]


def naive(batches, rows, bound=None):
    """The join over the last n rows of each stream, row by row."""
    windows = (deque(maxlen=rows), deque(maxlen=rows))
    found = Counter()
    for stream, time, key, number in arrivals(batches):
        for other_time, other_key, other in windows[1 - stream]:
            if key is not None and key == other_key and (bound is None or abs(time - other_time) <= bound):
                found[(number, other) if stream == 0 else (other, number)] += 1
        windows[stream].append((time, key, number))
    return found


def run(operator, batches, *, close=True):
    found = Counter()
    for batch in [*map(tables, batches), *([{}] if close else [])]:
        if not batch and close:
            operator.strategy.close()
        for chunk in operator.process(batch):
            found.update(zip(*(column.to_pylist() for column in chunk.columns), strict=True))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_do_not_wait_give_the_naive_join(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 600, nulls=0.1)
    n = (1, 3, 20, 100, 20, 100)[seed]
    bound = None if seed % 3 else 30
    join = keyed_join(rows=n, bound=bound, indexed=bool(seed % 2))
    expected = None
    for most in (4, 40, 600):
        batches = cuts(rng, rows, most)
        found = run(JoinOperator(join.spec, strategy()), batches)
        assert found == naive(batches, n, bound)
        if most == 600:
            expected = found
    assert expected is not None and (n == 1 or expected.total() > 20)


def test_in_the_order_of_time_cuts_do_not_matter():
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 1200, late=0)
    spec = keyed_join(rows=50).spec
    for keep, rear in ((1.0, 0.0), (1.0, 0.6), (0.5, 0.4)):
        runs = [
            run(JoinOperator(spec, strategy(keep, rear)), cuts(np.random.default_rng(most), rows, most))
            for most in (5, 60, 900)
        ]
        assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("seed", range(4))
def test_shedding_leaves_a_part_of_the_join(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 1500, nulls=0.05)
    batches = cuts(rng, rows, 60)
    operator = JoinOperator(keyed_join(rows=40).spec, strategy(0.8, 0.5, seed))
    found, full = run(operator, batches), naive(batches, 40)
    assert found <= full and 0 < found.total() < full.total()
    shed = sum(own.shed for own in operator.statistics.streams)
    assert shed == pytest.approx(300, abs=80)


def test_windows_hold_no_more_than_their_rows():
    rows = random_rows(np.random.default_rng(1), 2000, late=0)
    operator = JoinOperator(keyed_join(rows=30).spec, strategy())
    run(operator, cuts(np.random.default_rng(2), rows, 100))
    assert operator.window_rows == 60


@pytest.mark.parametrize("rear", [0.25, 0.6, 0.9])
def test_exactly_the_share_at_the_rear_does_not_probe(rear):
    """Few values, so that most yields are equal to others."""
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 20_000, values=4, late=0)
    operator = JoinOperator(keyed_join(rows=100).spec, strategy(rear=rear))
    run(operator, cuts(rng, rows, 500))
    probes = [direction.learned for direction in operator.strategy.take().directions]
    assert 1 - sum(probes) / 20_000 == pytest.approx(rear, abs=0.01)


def test_rows_with_more_partners_probe_first():
    rng = np.random.default_rng(4)
    values = np.where(rng.random(8000) < 0.5, 0, rng.integers(1, 100, 8000))
    rows = [(n % 2, n, int(value), n) for n, value in enumerate(values)]
    batches = cuts(rng, rows, 200)
    full = naive(batches, 100)
    found = run(JoinOperator(keyed_join(rows=100).spec, strategy(rear=0.5)), batches)
    assert found.total() > 0.9 * full.total()


def test_what_is_shed_at_the_rear_is_counted_exactly():
    rows = random_rows(np.random.default_rng(6), 4000, late=0)
    batches = cuts(np.random.default_rng(7), rows, 150)
    operator = JoinOperator(keyed_join(rows=60).spec, strategy(rear=0.5))
    found, full = run(operator, batches), naive(batches, 60)
    share = operator.strategy.completeness
    assert (share.delivered, share.missed) == (found.total(), full.total() - found.total())
    assert share.interval == (share.share, share.share)


def test_the_interval_covers_the_truth():
    covered, runs = 0, 100
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        batches = cuts(rng, random_rows(rng, 500, values=8, late=0), 250)
        operator = JoinOperator(keyed_join(rows=50).spec, strategy(0.6, 0.3, seed))
        delivered = run(operator, batches).total() / naive(batches, 50).total()
        low, high = operator.strategy.completeness.interval
        covered += low <= delivered <= high
    assert covered >= 0.9 * runs


def test_with_time_bounds_what_is_missed_is_estimated():
    rows = random_rows(np.random.default_rng(8), 6000, late=0)
    batches = cuts(np.random.default_rng(9), rows, 200)
    operator = JoinOperator(keyed_join(rows=60, bound=50).spec, strategy(rear=0.5))
    found, full = run(operator, batches), naive(batches, 60, 50)
    assert found <= full
    assert operator.strategy.completeness.share == pytest.approx(found.total() / full.total(), abs=0.03)


@pytest.mark.parametrize(("keep", "rear"), [(1.0, 0.0), (0.8, 0.5)])
def test_a_host_that_is_rebuilt_goes_on_as_if_nothing_had_happened(keep, rear):
    rng = np.random.default_rng(10)
    batches = cuts(rng, random_rows(rng, 2000), 90)
    spec = keyed_join(rows=40).spec
    whole = run(JoinOperator(spec, strategy(keep, rear)), batches)
    operator, found = JoinOperator(spec, strategy(keep, rear)), Counter()
    for number, batch in enumerate(batches):
        found += run(operator, [batch], close=False)
        if number % 5 == 2:
            fresh = JoinOperator(spec, strategy(keep, rear, seed=99))
            for stream in (0, 1):
                store, windows = operator.held(stream)
                start, times = fresh.held(stream)[0].restore(store.snapshot(windows.rows))
                fresh.held(stream)[1].add(start, times)
            fresh.recall(operator.notes())
            operator = fresh
    assert found + run(operator, []) == whole


def test_rows_wait_only_while_load_is_shed():
    rows = random_rows(np.random.default_rng(11), 600, late=0)
    batches = cuts(np.random.default_rng(12), rows, 50)
    third = len(batches) // 3
    operator = JoinOperator(keyed_join(rows=40).spec, strategy())
    found = run(operator, batches[:third], close=False)
    assert found == naive(batches[:third], 40)
    operator.strategy.configure(Configuration(ORDERS, rear=(0.5, 0.5)))
    found += run(operator, batches[third : 2 * third], close=False)
    waiting = sum(row[0] >= 0 for batch in batches[: 2 * third] for row in batch) - sum(
        operator.held(s)[0].size for s in (0, 1)
    )
    assert 40 <= waiting <= 80
    operator.strategy.configure(Configuration(ORDERS))
    found += run(operator, batches[2 * third :], close=False)
    assert found <= naive(batches, 40)
    later = {row[3] for batch in batches[2 * third :] for row in batch}
    due = {pair for pair in naive(batches, 40) if max(pair) in later}
    assert due <= set(found)


def test_work_has_updates_and_probes():
    rows = random_rows(np.random.default_rng(13), 1000, late=0)
    operator = JoinOperator(keyed_join(rows=40).spec, strategy())
    run(operator, cuts(np.random.default_rng(14), rows, 100))
    charged = sum(direction.charges for direction in operator.statistics.directions)
    assert charged == 1000 * (UPDATE + PROBE)


def test_who_pushes_whom_out():
    rng = np.random.default_rng(15)
    streams = rng.integers(0, 2, 200)
    found = pushed(streams, 7)
    for place, end in enumerate(found.tolist()):
        counts = [Counter(streams[place : stop + 1].tolist()) for stop in range(place, 200)]
        late = [place + n for n, count in enumerate(counts) if max(count.values()) > 7]
        assert end == (late[0] if late else 200)


def test_standing_among_rows():
    yields = np.array([3, 1, 3, 5, 1, 3])
    lower, equal = standing(yields, np.array([0, 1, 1]), np.array([4, 5, 6]))
    assert lower.tolist() == [1, 0, 2] and equal.tolist() == [2, 2, 2]


def test_two_streams_and_rows_are_needed():
    spec = replace(keyed_join(rows=5).spec, rows=None)
    with pytest.raises(ValueError, match="two streams"):
        JoinOperator(spec, strategy())


def shedding(join, budget):
    configuration = Configuration(ORDERS)
    return Shedding("dual", budget, Policy(), join.graph, 3, configuration)


def results_of(chunks):
    found = Counter()
    for chunk in chunks:
        found.update(zip(*(column.to_pylist() for column in chunk.columns), strict=True))
    return found


def test_a_batch_query_is_the_join_in_the_order_of_time():
    rows = random_rows(np.random.default_rng(20), 3000)
    join = keyed_join(rows=50)
    found = results_of(join_group(join.spec, 0, tables(rows), shedding(join, 1.0), 0))
    assert found == naive([rows], 50)


@pytest.mark.parametrize("budget", [0.6, 0.25])
def test_a_batch_query_keeps_to_its_budget(budget):
    rng = np.random.default_rng(21)
    keys = np.minimum(rng.zipf(1.3, 12_000), 50)
    rows = [(n % 2, n, int(key), n) for n, key in enumerate(keys)]
    join = keyed_join(rows=200, indexed=False)
    full, part = (JoinOperator(join.spec, strategy(seed=s)) for s in (0, 1))
    run(full, [rows[start : start + 200] for start in range(0, len(rows), 200)])
    adapter = shedding(join, budget).adapter(join.spec)
    found = Counter()
    for start in range(0, len(rows), 200):
        found += run(part, [rows[start : start + 200]], close=False)
        part.strategy.configure(adapter.adapt(part.strategy.take(), budget))
    found += run(part, [])
    assert part.statistics.work / full.statistics.work == pytest.approx(budget, rel=0.05)
    assert found.total() / full.strategy.completeness.delivered > budget
    share = part.strategy.completeness
    low, high = share.interval
    assert low <= share.delivered / full.strategy.completeness.delivered <= high
    assert found <= naive([rows], 200)


def test_a_stream_gives_what_a_batch_query_gives():
    rows = random_rows(np.random.default_rng(22), 1000, late=0)
    join = keyed_join(rows=30)
    plan = StreamingPlan(join.spec, Hosts(1), shedding(join, 1.0), False, (False, False))
    store, found = MemoryStore(), Counter()
    for batch in cuts(np.random.default_rng(23), rows, 200):
        host = StreamingJoin(plan, "dual-test", 0, store, lambda: 0.0)
        found += results_of(host.process({s: [own] for s, own in tables(batch).items()}, None, None))
        assert sum(count["arrived"] for count in host.report.streams) == len(batch)
    assert found == results_of(join_group(join.spec, 0, tables(rows), shedding(join, 1.0), 0))


@pytest.mark.parametrize("follows", [False, True])
def test_a_batch_that_is_repeated_is_shed_alike(monkeypatch, follows):
    """A sink may have the rows of a batch whose state was lost: the state of its repetition must fit them."""
    rng = np.random.default_rng(24)
    rows = [(n % 2, n, int(key), n) for n, key in enumerate(np.minimum(rng.zipf(1.3, 12_000), 50))]
    join = keyed_join(rows=200, indexed=False)
    own = replace(shedding(join, 1.0 if follows else 0.3), policy=Policy(follows=follows))
    plan = StreamingPlan(join.spec, Hosts(1), own, follows, (False, False))
    # A first batch of this much is shed before there was a decision.
    monkeypatch.setattr(steering, "ENOUGH", 2e5)
    store, found, shed = MemoryStore(), Counter(), 0
    for start in range(0, len(rows), 1500):
        batch = {s: [own] for s, own in tables(rows[start : start + 1500]).items()}
        again = MemoryStore()
        again.manifest, again.pieces = store.manifest, dict(store.pieces)
        outputs = []
        for attempt in (store, again):
            # The second one is that of a new process.
            if attempt is again:
                remembered = dict(memory._cache)
                memory._cache.clear()
            host = StreamingJoin(plan, f"again-{follows}", 0, attempt, lambda: 0.0)
            outputs.append(results_of(host.process(batch, None, None)))
            shed += sum(count["shed"] for count in host.report.streams)
        memory._cache.clear()
        memory._cache.update(remembered)
        assert outputs[0] == outputs[1]
        kept = [Manifest.from_bytes(each.manifest).adapted for each in (store, again)]
        assert kept[0] == kept[1] is not None
        found += outputs[0]
    assert shed > 1000
    assert max(found.values()) == 1
    assert found <= naive([rows], 200)
