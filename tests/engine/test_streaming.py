"""A host of a streaming join: nothing is lost, doubled or forgotten, whatever happens between batches."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.build import World, collect, counted
from engine.test_strategies import batches
from sparkshed.engine import host as memory
from sparkshed.engine import pacing, steering
from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.keeping import Manifest, MemoryStore
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.registry import STRATEGIES as STRATEGIES_BY_NAME
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.experiments.joins import SECOND, camera_join
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.shedding import Shedding
from sparkshed.planner.slices import Span
from sparkshed.planner.streaming import Decision, Hosts, Report, StreamingPlan
from sparkshed.workloads.cameras import camera_streams, camera_table


def copied(store: MemoryStore) -> MemoryStore:
    other = MemoryStore()
    other.manifest, other.pieces = store.manifest, dict(store.pieces)
    return other


@pytest.fixture(autouse=True)
def fresh_workers():
    memory._cache = OrderedDict()


def plan_of(spec, shedding=None, **changes) -> StreamingPlan:
    plan = StreamingPlan(spec, Hosts(1), shedding, False, (False,) * len(spec.streams), expires=False)
    return replace(plan, **changes)


def step(plan, store, batch, decision=None, watermark=None, name="q") -> tuple[list[pa.RecordBatch], Report]:
    join = StreamingJoin(plan, name, 0, store, lambda: 0.0)
    tables = {stream: [rows] for stream, rows in batch.items()}
    found = list(join.process(tables, decision and decision.to_json(), watermark))
    assert join.report is not None
    return found, Report.from_json(join.report.to_json())


@settings(deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_workers_that_change_die_and_repeat_make_no_difference(seed, m):
    rng = Random(seed)
    world = World(rng, m, 10)
    spec = world.spec(chunk=1000, basic=rng.choice([1, 3, 50]))
    cut = batches(rng, world, 4)
    exact, whole = JoinOperator(spec), Counter()
    plan, store, found = plan_of(spec), MemoryStore(), Counter()
    workers: list[OrderedDict] = [OrderedDict(), OrderedDict(), OrderedDict()]
    for batch in cut:
        whole += collect(exact, batch, spec.chunk)
        memory._cache = rng.choice(workers)
        fate = rng.choice(["same worker", "new worker", "fails", "fails half-way"])
        if fate == "new worker":
            memory._cache.clear()
        elif fate == "fails":
            # The batch is done, but Spark throws its state away and repeats it.
            step(plan, copied(store), batch)
            memory._cache = rng.choice(workers)
        elif fate == "fails half-way":
            lost = StreamingJoin(plan, "q", 0, copied(store), lambda: 0.0)
            next(lost.process({s: [rows] for s, rows in batch.items()}, None, None), None)
        results, report = step(plan, store, batch)
        found += counted(results)
        assert report.completeness.delivered == sum(r.num_rows for r in results)
    assert found == whole


def cameras(seconds: float, rate: float = 40.0) -> list[pa.Table]:
    streams = camera_streams(rate, seconds, (0, 5, 15), (2, 2, 50), seeds=[1, 2, 3])
    return [camera_table(stream) for stream in streams]


def cut_by_time(tables, seconds: float, length: float) -> list[dict[int, pa.Table]]:
    times = [table.column("ts").cast(pa.int64()).to_numpy() for table in tables]
    start = min(own[0] for own in times)
    found = []
    for number in range(int(seconds / length)):
        low, high = (start + (number + k) * length * SECOND for k in (0, 1))
        found.append(
            {
                s: table.filter(pa.array((times[s] >= low) & (times[s] < high)))
                for s, table in enumerate(tables)
            }
        )
    return found


def test_a_worker_that_knows_the_state_reads_nothing():
    plan, store = plan_of(camera_join(3).spec), MemoryStore()
    for batch in cut_by_time(cameras(10), 10, 2):
        step(plan, store, batch)
    assert store.reads == 0
    memory._cache.clear()
    before = dict(store.pieces)
    _, report = step(plan, store, batch)
    assert report.reads == store.reads == len(before) > 0
    assert report.read_bytes == sum(map(len, before.values()))
    assert report.state_bytes == sum(map(len, store.pieces.values()))


def test_workers_that_take_turns_read_only_what_the_other_one_wrote():
    plan, store = plan_of(camera_join(3).spec, expires=True), MemoryStore()
    workers: list[OrderedDict] = [OrderedDict(), OrderedDict()]
    exact, alone = JoinOperator(plan.spec), MemoryStore()
    tables, former = cameras(80), set()
    start = min(int(t.column("ts").cast(pa.int64())[0].as_py()) for t in tables)
    for number, batch in enumerate(cut_by_time(tables, 80, 2)):
        memory._cache = workers[number % 2]
        watermark = start + number * 2 * SECOND
        before = set(store.pieces)
        results, report = step(plan, store, batch, watermark=watermark)
        assert counted(results) == collect_all(exact, batch)
        _, reference = step(plan, alone, batch, watermark=watermark, name="alone")
        assert report.streams == reference.streams, "nothing expires twice"
        assert report.rows == reference.rows
        if number > 2:
            assert report.reads <= len(before - former), "only what came since"
        former = before
    assert len(store.pieces) > 20


def rows_at(start: float, count: int = 1) -> pa.Table:
    """Rows with the same value, in the second that begins then."""
    times = [round((start + number / count) * SECOND) for number in range(count)]
    return pa.table(
        {
            "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "x": pa.array([1.0] * count),
            "id": pa.array(range(count)),
        }
    )


def take_turns(plan, workers, script) -> list[tuple[int, int]]:
    """Results and rows in the windows after each batch, done by the workers with these numbers."""
    store, caches, found = MemoryStore(), [OrderedDict() for _ in workers], []
    for worker, (batch, watermark, decision) in zip(workers, script, strict=True):
        memory._cache = caches[worker]
        results, report = step(plan, store, batch, decision, watermark * SECOND)
        found.append((sum(r.num_rows for r in results), report.rows))
        assert sum(piece.rows for piece in Manifest.from_bytes(store.manifest).pieces.values()) == report.rows
    return found


def test_a_window_that_expired_and_came_back_is_not_taken_for_the_old_one():
    spec = camera_join(2, window=20, basic=10).spec
    # Rows of the first stream only meet later ones of the second, so they need not be kept.
    one_sided = replace(spec, bounds=((0, spec.bounds[0][1]), (0, 0)))
    plan = plan_of(one_sided, expires=True)
    script = [
        ({0: rows_at(1003)}, 1000, None),
        ({0: rows_at(1007)}, 1005, None),
        ({1: rows_at(1006)}, 1005, None),
    ]
    alone = take_turns(plan, [0, 0, 0], script)
    assert alone[-1][0] == 1
    assert take_turns(plan, [0, 1, 0], script) == alone


def test_workers_that_catch_up_do_not_thin_windows_by_an_old_decision():
    join = camera_join(2)
    plan = plan_of(join.spec, shedding_of(join, 1.0), expires=True)
    near = Configuration(join.spec.orders, 0.5, shred=0.1, horizons=(4 * SECOND, 4 * SECOND), reserve=0.2)
    script = [
        ({0: rows_at(1000, 100)}, 1000, Decision(1, near)),
        ({0: rows_at(1010, 10)}, 1009, Decision(2, Configuration(join.spec.orders, shred=0.1))),
        ({1: rows_at(1010)}, 1009, None),
    ]
    alone = take_turns(plan, [0, 0, 0], script)
    assert alone[-1][0] == 110
    assert take_turns(plan, [0, 1, 0], script) == alone


def test_windows_in_many_parts_are_written_anew_and_read_again():
    plan = plan_of(camera_join(2, window=100, basic=100).spec, expires=True)
    script = [({number % 2: rows_at(1000 + number)}, 1000, None) for number in range(90)]
    alone = take_turns(plan, [0] * 90, script)
    rng = Random(3)
    assert take_turns(plan, [rng.randrange(3) for _ in range(90)], script) == alone


def test_whole_windows_expire_with_the_watermark():
    join, store = camera_join(3), MemoryStore()
    plan = plan_of(join.spec, expires=True)
    tables = cameras(60)
    start = min(int(t.column("ts").cast(pa.int64())[0].as_py()) for t in tables)
    exact, kept = JoinOperator(join.spec), []
    whole = found = 0
    for number, batch in enumerate(cut_by_time(tables, 60, 2)):
        whole += sum(r.num_rows for r in exact.process(batch))
        results, report = step(plan, store, batch, watermark=start + number * 2 * SECOND)
        found += sum(r.num_rows for r in results)
        kept.append(report.rows)
        assert sum(piece.rows for piece in Manifest.from_bytes(store.manifest).pieces.values()) == report.rows
        assert all(own["late"] == 0 for own in report.streams)
    assert found == whole > 1000
    assert max(kept) < 1.25 * 3 * 40 * 22
    assert set(Manifest.from_bytes(store.manifest).pieces) == set(store.pieces)


def test_rows_later_than_the_watermark_are_counted_and_left_out():
    join = camera_join(2)
    tables = cameras(10)[:2]
    start = min(int(t.column("ts").cast(pa.int64())[0].as_py()) for t in tables)
    plan = plan_of(join.spec, expires=True, regain=3 * SECOND)
    _, report = step(plan, MemoryStore(), dict(enumerate(tables)), watermark=start + 2 * SECOND)
    for table, counts in zip(tables, report.streams, strict=True):
        late = int((table.column("ts").cast(pa.int64()).to_numpy() < start + 5 * SECOND).sum())
        assert counts["late"] == late > 0
        assert counts["arrived"] == table.num_rows
        assert counts["joined"] == table.num_rows - late


def shedding_of(join, budget: float, strategy: str = "grubjoin") -> Shedding:
    start = Configuration(join.spec.orders, shred=0.1)
    return Shedding(strategy, budget, Policy(), join.graph, 7, start)


#: Strategies, and the streams that they join here.
STRATEGIES = [("grubjoin", 3), ("randomdrop", 3), ("adaptive", 2)]


@pytest.mark.parametrize(("strategy", "m"), STRATEGIES)
def test_decisions_are_followed_and_outlive_the_worker(strategy, m):
    join = camera_join(m)
    plan, store = plan_of(join.spec, shedding_of(join, 1.0, strategy)), MemoryStore()
    off = (((), ()),) * m
    chosen = (((1,),), ((),))
    settings = {
        "grubjoin": {"dear": off, "cheap": off, "shred": 0.5},
        "randomdrop": {"keep": (0.3, 0.3, 0.3), "shred": 0.5},
        "adaptive": {
            "dear": chosen,
            "cheap": chosen,
            "shred": 0.02,
            "thins": ((1.0,),) * 2,
            "partly": (Span(4 * SECOND, 4 * SECOND + 1000), Span(0, SECOND)),
        },
    }
    shed = Configuration(join.spec.orders, 0.2, **settings[strategy])
    full, kept = JoinOperator(join.spec), []
    for number, batch in enumerate(cut_by_time(cameras(40)[:m], 40, 4)):
        whole = collect_all(full, batch)
        decision = Decision(1, shed, {"beta": 0.5}) if number == 4 else None
        if number % 3 == 0:
            memory._cache.clear()
        results, report = step(plan, store, batch, decision)
        assert counted(results) <= whole
        assert report.version == (1 if number >= 4 else 0)
        assert report.throttle == (0.2 if number >= 4 else 1.0)
        kept.append(sum(r.num_rows for r in results) / max(1, sum(whole.values())))
    assert kept[3] == 1
    assert max(kept[5:]) < 0.5


def collect_all(operator, batch) -> Counter:
    return counted(list(operator.process(batch)))


def test_rows_that_were_kept_stand_for_others_after_a_restart():
    join = camera_join(2)
    keep = Configuration(join.spec.orders, 0.2, keep=(0.25, 0.5), shred=0.5)
    plan, store = plan_of(join.spec, shedding_of(join, 1.0, "randomdrop")), MemoryStore()
    first, second = cut_by_time(cameras(20)[:2], 20, 10)
    step(plan, store, first, Decision(1, keep))
    remembered = memory._cache["q", 0].operator
    memory._cache.clear()
    restored = StreamingJoin(plan, "q", 0, store, lambda: 0.0)._live.operator
    for stream, weight in enumerate((4.0, 2.0)):
        for number in sorted(restored.held(stream)[1].numbers):
            restored.read(stream, number)
        assert set(restored.held(stream)[0].weights) == {weight}
        np.testing.assert_array_equal(
            restored.held(stream)[0].times, np.sort(remembered.held(stream)[0].times)
        )
    step(plan, store, second)


@pytest.mark.parametrize(("strategy", "m"), [("grubjoin", 3), ("adaptive", 2)])
def test_before_any_decision_a_host_plans_for_itself(strategy, m):
    join = camera_join(m)
    plan, store = plan_of(join.spec, shedding_of(join, 0.3, strategy)), MemoryStore()
    full, work = JoinOperator(join.spec), []
    for batch in cut_by_time(cameras(60, 60)[:m], 60, 10):
        before = full.statistics.work
        collect_all(full, batch)
        _, report = step(plan, store, batch)
        work.append(sum(report.work) / (full.statistics.work - before))
    assert np.mean(work[2:]) == pytest.approx(0.3, abs=0.1)
    assert Manifest.from_bytes(store.manifest).own is not None


@pytest.mark.parametrize(("strategy", "m"), STRATEGIES)
def test_a_first_batch_that_is_far_too_long_is_cut_short(monkeypatch, strategy, m):
    join = camera_join(m)
    shedding = shedding_of(join, 1.0, strategy)
    plan = plan_of(join.spec, replace(shedding, policy=Policy(follows=True)), follows=True)
    (batch,) = cut_by_time(cameras(40, 100)[:m], 40, 40)
    full = JoinOperator(join.spec)
    whole = collect_all(full, batch)
    results, report = step(plan, MemoryStore(), batch)
    assert counted(results) == whole, "a machine may well be able to do this"
    assert report.throttle == 1
    cap = sum(pacing.efforts_of(full.statistics)) / 8
    monkeypatch.setattr(steering, "ENOUGH", cap)
    store = MemoryStore()
    results, report = step(plan, store, batch, name="short")
    effort = sum(report.work) + 99 * report.completeness.delivered
    assert 0.3 * cap < effort < 2 * cap
    assert counted(results) <= whole
    # Results make most of the effort, and `adaptive` finds more of them with less: it must shed more work.
    assert (0.03 if strategy == "adaptive" else 0.05) < report.throttle < 0.4
    assert report.version == 0
    share = sum(r.num_rows for r in results) / sum(whole.values())
    low, high = report.completeness.interval
    assert low - 0.1 < share < high + 0.1
    # A decision ends that.
    decision = Decision(1, Configuration(join.spec.orders, shred=0.1))
    _, report = step(plan, store, {0: batch[0].slice(0, 10)}, decision, name="short")
    assert (report.version, report.throttle) == (1, 1.0)


@pytest.mark.parametrize(("strategy", "m"), STRATEGIES)
def test_a_host_sheds_more_than_it_was_told_where_it_must(strategy, m):
    join = camera_join(m)
    shedding = replace(shedding_of(join, 1.0, strategy), policy=Policy(follows=True))
    plan = plan_of(join.spec, shedding, follows=True)
    first, second = cut_by_time(cameras(40, 100)[:m], 40, 20)
    full = JoinOperator(join.spec)
    collect_all(full, first)
    before = sum(pacing.efforts_of(full.statistics))
    whole = collect_all(full, second)
    effort = sum(pacing.efforts_of(full.statistics)) - before
    everything = Configuration(join.spec.orders, shred=0.1)
    rows = sum(table.num_rows for table in second.values())
    for most, low, high in [(None, 1, 1.1), (4 * effort / rows, 1, 1.1), (effort / 8 / rows, 0.05, 0.2)]:
        store = MemoryStore()
        step(plan, store, first, Decision(1, everything), name=str(most))
        results, report = step(plan, store, second, Decision(2, everything, most=most), name=str(most))
        assert low <= report.effort / effort < high
        assert counted(results) <= whole
        assert report.version == 2
        assert (report.throttle == 1) == (low == 1)
        assert Manifest.from_bytes(store.manifest).own is None
    # It goes on as it was told.
    _, report = step(plan, store, {0: second[0].slice(0, 1)}, name=str(most))
    assert report.throttle == 1


def test_a_host_without_rows_follows_decisions_too():
    join = camera_join(3)
    shedding = replace(shedding_of(join, 1.0), policy=Policy(follows=True))
    plan, store = plan_of(join.spec, shedding, follows=True, expires=True), MemoryStore()
    (batch,) = cut_by_time(cameras(10, 50), 10, 10)
    step(plan, store, batch)
    half = Configuration(join.spec.orders, 0.5, shred=0.1)
    results, report = step(plan, store, {}, Decision(1, half, most=1000.0))
    assert (results, report.version, report.throttle, report.effort) == ([], 1, 0.5, 0)
    assert Manifest.from_bytes(store.manifest).effort, "what rows cost is still known"
    late = 2_000_000_000 * SECOND
    _, report = step(plan, store, batch, Decision(2, half, most=1000.0), watermark=late)
    assert [own["late"] for own in report.streams] == [table.num_rows for table in batch.values()]


def test_a_batch_is_one_piece_for_each_basic_window():
    join = camera_join(3, basic=5)
    plan, store = plan_of(join.spec), MemoryStore()
    (batch,) = cut_by_time(cameras(20, 50), 20, 20)
    mixed = {
        stream: table.take(np.random.default_rng(1).permutation(table.num_rows))
        for stream, table in batch.items()
    }
    step(plan, store, mixed)
    windows = [key[:2] for key in Manifest.from_bytes(store.manifest).pieces]
    assert len(windows) == len(set(windows)) <= 3 * 5


def watched(monkeypatch):
    """A plan that follows the load, a store, and into how many portions each batch is cut."""
    join, cut = camera_join(3), []
    shedding = replace(shedding_of(join, 1.0), policy=Policy(follows=True))
    monkeypatch.setattr(steering, "portions", lambda spec, rows, most: cut.append(most) or iter([rows]))
    return plan_of(join.spec, shedding, follows=True), MemoryStore(), cut


def test_light_batches_are_joined_at_once(monkeypatch):
    plan, store, cut = watched(monkeypatch)
    first, second, third = cut_by_time(cameras(30, 100), 30, 10)
    step(plan, store, first)
    assert cut == [64], "nothing is known of the first one"
    step(plan, store, second)
    assert cut == [64, 1]
    monkeypatch.setattr(steering, "ENOUGH", 1e6)
    step(plan, store, third)
    assert cut == [64, 1, 64], "too much to be sure"


@pytest.mark.parametrize(("version", "most", "portions"), [(10, 1e9, 4), (1, 1e9, 16)])
def test_a_new_decision_is_watched_in_a_few_portions_and_the_first_ones_in_more(
    version, most, portions, monkeypatch
):
    plan, store, cut = watched(monkeypatch)
    first, second, third = cut_by_time(cameras(30, 100), 30, 10)
    everything = Configuration(plan.spec.orders, shred=0.1)
    decision = Decision(version, everything, most=most)
    for batch, new in ((first, None), (second, decision), (third, None)):
        step(plan, store, batch, new)
    assert cut == [64, portions, 1]


def test_a_batch_that_is_hardly_too_much_has_fewer_portions_than_one_that_is_far_too_much(monkeypatch):
    plan, store, cut = watched(monkeypatch)
    first, second, third = cut_by_time(cameras(30, 100), 30, 10)
    everything = Configuration(plan.spec.orders, shred=0.1)
    step(plan, store, first)
    cost = sum(Manifest.from_bytes(store.manifest).effort) / 3
    step(plan, store, second, Decision(10, everything, most=cost / 1.5))
    step(plan, store, third, Decision(11, everything, most=cost / 1000))
    assert 16 < cut[1] < 64 == cut[2]


@pytest.mark.parametrize(("strategy", "m"), [("grubjoin", 3), ("adaptive", 2)])
@pytest.mark.parametrize("seconds", [1, 4])
def test_under_one_decision_a_stream_finds_what_one_batch_of_all_rows_does(strategy, m, seconds):
    join = camera_join(m)
    if strategy == "grubjoin":
        chosen = (((1, 2), (0, 2, 3)), ((), ()), ((0, 1), (1, 4)))
        decided = Configuration(join.spec.orders, 0.4, chosen, chosen)
    else:
        chosen, part = (((0, 3),), ((4,),)), (Span(4 * SECOND, 5 * SECOND), Span(0, SECOND))
        decided = Configuration(join.spec.orders, 0.4, chosen, chosen, partly=part)
    own = shedding_of(join, 1.0, strategy)
    one = JoinOperator(join.spec, STRATEGIES_BY_NAME[strategy](decided, np.random.default_rng(0)))
    whole = collect_all(one, {stream: rows for stream, rows in enumerate(cameras(40)[:m])})
    plan, store, found = plan_of(join.spec, own), MemoryStore(), Counter()
    for number, batch in enumerate(cut_by_time(cameras(40)[:m], 40, seconds)):
        if number % 3 == 0:
            memory._cache.clear()
        results, _ = step(plan, store, batch, Decision(1, decided))
        found += counted(results)
    assert found == whole
    assert 0 < found.total() < collect_all(JoinOperator(join.spec), dict(enumerate(cameras(40)[:m]))).total()


def test_the_same_seed_gives_the_same_results_on_any_worker():
    join = camera_join(3)
    half = Configuration(join.spec.orders, 0.3, shred=0.3, keep=(0.5, 0.5, 0.5))
    outputs = []
    for forgetful in (False, True):
        plan = plan_of(join.spec, shedding_of(join, 1.0, "randomdrop"))
        store, found = MemoryStore(), Counter()
        for batch in cut_by_time(cameras(20), 20, 4):
            results, _ = step(plan, store, batch, Decision(1, half), name=f"q{forgetful}")
            found += counted(results)
            if forgetful:
                memory._cache.clear()
        outputs.append(found)
    assert outputs[0] == outputs[1]
    assert sum(outputs[0].values()) > 0


def test_state_of_another_query_is_refused():
    store = MemoryStore()
    step(plan_of(camera_join(3).spec), store, {})
    other = "differs in its `time bounds`, `basic window`.*checkpointLocation"
    with pytest.raises(CheckpointError, match=other):
        step(plan_of(camera_join(3, window=10, basic=1).spec), store, {})
    with pytest.raises(CheckpointError, match="diffuse="):
        step(plan_of(camera_join(3).spec, hosts=Hosts(2)), store, {})
