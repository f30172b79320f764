"""What a worker that has just started reads: the windows that rows may probe, and no others."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.build import World, counted
from engine.test_strategies import batches, random_configuration
from engine.test_streaming import copied, plan_of, rows_at, shedding_of, step
from sparkshed.engine import host as memory
from sparkshed.engine.keeping import Manifest, MemoryStore
from sparkshed.engine.lazy import LazyWindows, Unread
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.experiments.joins import SECOND, Join, camera_join
from sparkshed.planner.configuration import Configuration, harvested
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.streaming import Decision


class Watched(MemoryStore):
    """A store that knows which pieces were read."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__()
        if store is not None:
            self.manifest, self.pieces = store.manifest, dict(store.pieces)
        self.read: list[tuple[int, int, int]] = []

    def get(self, key):
        self.read.append(key)
        return super().get(key)

    @property
    def windows(self) -> set[tuple[int, int]]:
        """Stream and number of each window that was read, every piece of it once."""
        assert len(self.read) == len(set(self.read))
        return {key[:2] for key in self.read}


@pytest.fixture(autouse=True)
def fresh_workers():
    memory._cache = OrderedDict()


def manifest_of(store: MemoryStore) -> Manifest:
    return Manifest.from_bytes(store.manifest)


def rows_by_window(store: MemoryStore) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for key, piece in manifest_of(store).pieces.items():
        found[key[:2]] = found.get(key[:2], 0) + piece.rows
    return found


def a_plan(rng: Random, world: World, basic: int, strategy: str):
    spec = world.spec(chunk=1000, basic=basic)
    join = Join(spec, JoinGraph(len(spec.streams), world.predicates))
    shedding = None if strategy == "exact" else shedding_of(join, 0.5, strategy)
    # With a budget and a decision a host has no plan of its own, which would be by what it remembers.
    return plan_of(spec, shedding, expires=rng.random() < 0.8)


def a_decision(rng: Random, plan, version: int) -> Decision | None:
    if plan.shedding is None:
        return None
    drop = plan.shedding.strategy == "randomdrop"
    chosen = random_configuration(rng, plan.spec, drop=drop)
    if rng.random() < 0.5:
        horizons = tuple(rng.choice([None, 0, 3, 8]) for _ in plan.spec.streams)
        chosen = replace(chosen, horizons=horizons, reserve=rng.choice([0.1, 0.5]))
    return Decision(version, chosen)


@pytest.mark.parametrize("strategy", ["exact", "grubjoin", "randomdrop"])
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), m=st.integers(2, 3))
def test_whoever_does_a_batch_the_results_are_the_same(strategy, seed, m):
    rng = Random(seed)
    world = World(rng, m, 12)
    plan = a_plan(rng, world, rng.choice([1, 3, 50]), strategy)
    lasting, fresh, changing = MemoryStore(), MemoryStore(), MemoryStore()
    workers = [OrderedDict(), OrderedDict(), OrderedDict()]
    own = OrderedDict()
    watermark = -9
    for number, batch in enumerate(batches(rng, world, 6)):
        watermark += rng.choice([0, 0, 1, 5])
        decision = a_decision(rng, plan, number + 1) if number == 0 or rng.random() < 0.3 else None
        found = []
        for store, cache in ((lasting, own), (fresh, OrderedDict()), (changing, rng.choice(workers))):
            memory._cache = cache
            if store is changing and rng.random() < 0.2:
                step(plan, copied(store), batch, decision, watermark)  # and its state is lost
            results, report = step(plan, store, batch, decision, watermark)
            found.append((counted(results), report.streams, report.rows, rows_by_window(store)))
            assert report.rows == sum(rows_by_window(store).values())
            assert set(manifest_of(store).pieces) == set(store.pieces)
            assert report.state_bytes == sum(map(len, store.pieces.values()))
        assert found[0] == found[1] == found[2]


def times_of(table, stream) -> list[int]:
    column = table.column(stream.time).drop_null()
    return column.cast("int64").to_pylist()


def in_reach(spec, strategy, configuration, origin: int, time: int, target: int, partner: int) -> bool:
    """Whether a row of the origin with this time probes a partner with that one; all but shredding."""
    past, future = spec.bounds[origin][target], spec.bounds[target][origin]
    lag = time - partner
    if (past is not None and lag > past) or (future is not None and -lag > future):
        return False
    part = configuration.partly[origin]
    if strategy == "adaptive" and part is not None and part.start <= lag < part.stop:
        return True
    slices, hop = spec.slices[origin][target], spec.orders[origin].index(target)
    own = min(max(lag // slices.basic, slices.first), slices.last)
    kinds = [(configuration.dear, configuration.mix), (configuration.cheap, 1 - configuration.mix)]
    used = [harvests[origin] for harvests, share in kinds if share > 0]
    return any(harvest is None or (all(harvest) and own in harvest[hop]) for harvest in used)


@settings(deadline=None, max_examples=80, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(2, 3))
@example(53686, 2)  # a part of a slice with nothing in it
def test_a_fresh_worker_reads_exactly_what_is_in_reach(seed, m):
    rng = Random(seed)
    world = World(rng, m, 20)
    basic = rng.choice([1, 3])
    strategy = rng.choice(["grubjoin", "adaptive"]) if m == 2 else "grubjoin"
    plan = a_plan(rng, world, basic, strategy)
    *before, batch = batches(rng, world, 5)
    store = MemoryStore()
    for own in before:
        step(plan, store, own, Decision(1, Configuration(plan.spec.orders)))
    batch = {s: table.slice(0, rng.choice([0, 1, 2])) for s, table in batch.items()}
    mix = rng.choice([0.0, 0.5, 1.0])
    configuration = replace(random_configuration(rng, plan.spec, drop=False), shred=0.0, mix=mix)
    watched, pieces = Watched(store), manifest_of(store).pieces
    memory._cache.clear()
    _, report = step(plan, watched, batch, Decision(2, configuration))
    last: dict[tuple[int, int], int] = {}
    for key, piece in pieces.items():
        last[key[:2]] = max(last.get(key[:2], piece.last), piece.last)
    new = {s: times_of(table, plan.spec.streams[s]) for s, table in batch.items()}
    held = {s for s, _ in last} | {s for s, times in new.items() if times}
    expected = set()
    for (target, window), end in last.items():
        partners = range(window * basic, end + 1)
        rows = [(s, t) for s, times in new.items() for t in times if s != target]
        if len(held) == m and any(
            in_reach(plan.spec, strategy, configuration, s, t, target, u)
            for (s, t), u in product(rows, partners)
        ):
            expected.add((target, window))
    assert watched.windows == expected
    assert set(watched.read) == {key for key in pieces if key[:2] in expected}
    assert report.reads == len(watched.read)
    assert report.read_bytes == sum(len(store.pieces[key]) for key in watched.read)


def filled(plan, seconds, *, streams=(0, 1), watermark=None, decision=None) -> MemoryStore:
    """Ten rows of each stream in each second, written one micro-batch per second."""
    store = MemoryStore()
    for second in seconds:
        step(plan, store, {s: rows_at(second, 10) for s in streams}, decision, watermark)
    memory._cache.clear()
    return store


def numbers(*spans: tuple[int, int, int]) -> set[tuple[int, int]]:
    """Windows of two seconds: stream, and the seconds from which to which."""
    return {(stream, number) for stream, low, high in spans for number in range(low // 2, high // 2 + 1)}


PAIR = camera_join(2, window=20, basic=2)


def test_of_a_state_that_is_longer_than_the_window_only_the_window_is_read():
    plan = plan_of(PAIR.spec, expires=True)
    # The watermark lags far behind, so nothing has expired.
    store = Watched(filled(plan, range(1000, 1100), watermark=990 * SECOND))
    results, report = step(plan, store, {0: rows_at(1090), 1: rows_at(1090)}, watermark=990 * SECOND)
    assert store.windows == numbers((0, 1070, 1099), (1, 1070, 1099))
    assert sum(r.num_rows for r in results) == 2 * 10 * 30 + 1
    assert report.rows == 2002
    assert report.reads == 2 * 30


def test_rows_of_one_stream_read_the_windows_of_the_others():
    plan = plan_of(PAIR.spec)
    store = Watched(filled(plan, range(1000, 1010)))
    results, _ = step(plan, store, {0: rows_at(1012)})
    assert sum(r.num_rows for r in results) == 100
    assert store.windows == numbers((1, 1000, 1009))


def test_a_bound_on_one_side_leaves_the_other_unread():
    one_sided = replace(PAIR.spec, bounds=((0, 4 * SECOND), (0, 0)))
    plan = plan_of(one_sided)
    store = Watched(filled(plan, range(1000, 1040)))
    step(plan, store, {0: rows_at(1020)})
    assert store.windows == numbers((1, 1016, 1020)), "rows of the first stream meet earlier ones"
    memory._cache.clear()
    store.read.clear()
    step(plan, store, {1: rows_at(1020)})
    assert store.windows == numbers((0, 1020, 1024)), "rows of the second one meet later ones"


def test_rows_far_apart_leave_what_is_between_them_unread():
    plan = plan_of(camera_join(2, window=2, basic=2).spec)
    store = Watched(filled(plan, range(1000, 1040)))
    step(plan, store, {0: rows_at(1005)})
    step(plan, store, {0: rows_at(1035)})
    assert store.windows == numbers((1, 1003, 1007), (1, 1033, 1037))


def test_a_harvest_of_few_slices_reads_few_windows():
    plan = plan_of(PAIR.spec, shedding_of(PAIR, 1.0))
    store = filled(plan, range(1000, 1040))
    far, off = ((8,),), ((),)
    few = Configuration(PAIR.spec.orders, 0.2, (far, off), (far, off))
    watched = Watched(store)
    results, _ = step(plan, watched, {0: rows_at(1038), 1: rows_at(1038)}, Decision(1, few))
    assert sum(r.num_rows for r in results) == 20
    assert watched.windows == numbers((1, 1020, 1022)), "16 to 18 seconds earlier; the other one is off"
    memory._cache.clear()
    watched = Watched(store)
    step(plan, watched, {0: rows_at(1038)}, Decision(1, replace(few, shred=0.1)))
    assert watched.windows == numbers((1, 1018, 1039)), "a row that is shredded sees everything"


def test_late_rows_and_rows_without_partners_read_nothing():
    plan = plan_of(PAIR.spec, expires=True)
    store = Watched(filled(plan, range(1000, 1010), watermark=1000 * SECOND))
    _, report = step(plan, store, {0: rows_at(1004), 1: rows_at(1200)}, watermark=1005 * SECOND)
    assert (report.reads, store.read) == (0, [])
    assert report.streams[0]["late"] == 1
    empty = Watched(filled(plan, range(1000, 1010), streams=(0,), watermark=1000 * SECOND))
    step(plan, empty, {0: rows_at(1010)}, watermark=1000 * SECOND)
    assert empty.read == []


def test_what_a_portion_needs_is_read_once():
    join = camera_join(2, window=4, basic=2)
    plan = plan_of(join.spec, shedding_of(join, 0.5))
    store = Watched(filled(plan, range(1000, 1100)))
    batch = {s: rows_at(1095, 3000) for s in (0, 1)}
    _, report = step(plan, store, batch)
    assert store.windows == numbers((0, 1091, 1099), (1, 1091, 1099))
    assert report.rows == 2000 + 6000 == sum(rows_by_window(store).values())


def test_windows_that_were_never_read_expire_and_are_removed():
    plan = plan_of(PAIR.spec, expires=True)
    store = Watched(filled(plan, range(1000, 1050), watermark=1000 * SECOND))
    for watermark in (1000, 1040, 1055):
        memory._cache.clear()
        _, report = step(plan, store, {}, watermark=watermark * SECOND)
        left = sorted(window for stream, window in rows_by_window(store) if stream == 0)
        assert left[0] == max(1000, watermark - 20) // 2
        assert report.rows == 2 * 10 * (1050 - 2 * left[0])
        assert set(manifest_of(store).pieces) == set(store.pieces)
    assert report.streams[0]["expired"] == 10 * (34 - 20)
    assert store.read == []
    results, _ = step(plan, store, {0: rows_at(1056)}, watermark=1055 * SECOND)
    assert sum(r.num_rows for r in results) == 10 * (1050 - 1036)


def test_a_window_expires_by_its_last_row_read_or_not():
    plan = plan_of(PAIR.spec, expires=True)
    stores = [filled(plan, [1000], watermark=1000 * SECOND) for _ in range(2)]
    for store in stores:
        step(plan, store, {0: rows_at(1001)}, watermark=1000 * SECOND)
    for store, forgetful in zip(stores, (False, True), strict=True):
        if forgetful:
            memory._cache.clear()
        _, report = step(plan, store, {}, watermark=1020 * SECOND + SECOND)
        assert [own["expired"] for own in report.streams] == [0, 10]
        _, report = step(plan, store, {}, watermark=1020 * SECOND + SECOND + 1)
        assert [own["expired"] for own in report.streams] == [11, 0]


def test_rows_that_enter_an_unread_window_are_there_with_those_that_were():
    plan = plan_of(camera_join(2, window=1, basic=100).spec)
    store = Watched(filled(plan, range(1010, 1020)))
    step(plan, store, {0: rows_at(1050), 1: rows_at(1095)})
    assert store.read == [], "the others are in the same window, and too old"
    results, report = step(plan, store, {0: rows_at(1011.5)})
    assert sum(r.num_rows for r in results) == 21
    assert {key[0] for key in store.read} == {1}
    assert (report.reads, report.rows) == (10, 203)
    results, report = step(plan, store, {1: rows_at(1011.5)})
    assert sum(r.num_rows for r in results) == 21 + 1
    assert (report.reads, report.rows) == (10, 204)


def test_windows_in_many_parts_are_read_before_they_are_written_anew():
    join = camera_join(2, window=1, basic=100)
    plan = plan_of(join.spec, shedding_of(join, 1.0))
    off = Configuration(join.spec.orders, 0.1, (((),), ((),)), (((),), ((),)))
    store = Watched()
    for second in range(1000, 1080):
        memory._cache.clear()
        _, report = step(plan, store, {s: rows_at(second) for s in (0, 1)}, Decision(1, off))
        assert report.rows == 2 * (second - 999) == sum(rows_by_window(store).values())
        assert report.reads == (64 if second in (1032, 1064) else 0)
    assert len(store.pieces) == 2 * 16
    results, _ = step(plan, store, {0: rows_at(1040)}, Decision(2, Configuration(join.spec.orders)))
    assert sum(r.num_rows for r in results) == 3


def test_windows_are_read_before_they_are_thinned_out():
    plan = plan_of(PAIR.spec, shedding_of(PAIR, 1.0), expires=True)
    near = Configuration(PAIR.spec.orders, 0.5, shred=0.1, horizons=(4 * SECOND,) * 2, reserve=0.2)
    stores = [filled(plan, range(1000, 1010), watermark=1000 * SECOND) for _ in range(2)]
    lasting, fresh = map(Watched, stores)
    for store in (lasting, fresh):
        for watermark, older in ((1008, {500, 501}), (1010, {502}), (1010, set()), (1011, set())):
            if store is fresh:
                memory._cache.clear()
                store.read.clear()
            _, report = step(plan, store, {}, Decision(1, near), watermark * SECOND)
            assert store is lasting or store.windows == set(product((0, 1), older))
        assert report.rows == 2 * (3 * 4 + 4 * 10)
    assert sorted(lasting.pieces.items()) == sorted(fresh.pieces.items()), "the same rows stayed"


def test_a_checkpoint_without_times_of_pieces_goes_on():
    plan = plan_of(PAIR.spec, expires=True)
    store = filled(plan, range(1000, 1010), watermark=1000 * SECOND)
    data = json.loads(store.manifest)
    data["pieces"] = [piece[:5] for piece in data["pieces"]]
    store.manifest = json.dumps(data).encode()
    _, report = step(plan, store, {}, watermark=1025 * SECOND)
    assert report.rows == 2 * 10 * 6, "whole windows, by the end of their time"
    results, _ = step(plan, store, {0: rows_at(1025)}, watermark=1025 * SECOND)
    assert sum(r.num_rows for r in results) == 10 * 5


def test_workers_that_catch_up_read_what_is_in_reach_and_not_more():
    plan, store = plan_of(PAIR.spec), Watched()
    one, other = OrderedDict(), OrderedDict()
    for second in range(1000, 1040):
        memory._cache = one if second < 1030 else other
        step(plan, store, {s: rows_at(second, 10) for s in (0, 1)})
    memory._cache = one
    store.read.clear()
    step(plan, store, {0: rows_at(1013)})
    assert store.windows == numbers((1, 1030, 1033)), "it still knows the others"


@settings(deadline=None)
@given(st.integers(0, 2**32), st.floats(0.05, 0.95))
def test_a_window_is_the_same_whenever_its_parts_are_read(seed, share):
    rng = np.random.default_rng(seed)
    windows, lazy, written, start = Windows(100, 3), LazyWindows(100, 3), {}, 0
    for part in range(rng.integers(1, 8)):
        times = np.sort(rng.integers(0, 20, rng.integers(1, 9)))
        own = BasicWindow(np.arange(start, start + len(times)), times)
        windows.add(start, times)
        if rng.random() < 0.5:
            written[part] = own
            lazy.leave(0, Unread(part, len(times), int(times[-1])))
        else:
            lazy.add(start, times)
        assert lazy.held == windows.size
        assert lazy.numbers == {0}
        start += len(times)
        if rng.random() < 0.3:
            lazy.read(0, written.__getitem__)
    lazy.read(0, written.__getitem__)
    assert lazy.size == lazy.loaded == lazy.held == windows.size
    for made in (lambda w: w, lambda w: w.thin(share), lambda w: w.coarse(2)):
        assert made(lazy).rows.tolist() == made(windows).rows.tolist()


def test_the_slices_that_rows_may_probe():
    orders = ((1,), (0,))
    both = Configuration(orders, 0.5, (((1, 4),), None), (((2,),), ((),)), mix=0.5)
    assert (harvested(both, 0), harvested(both, 1)) == (((1, 2, 4),), None)
    cheap = replace(both, mix=0.0)
    assert (harvested(cheap, 0), harvested(cheap, 1)) == (((2,),), ((),))
    assert harvested(replace(cheap, shred=0.01), 0) is None
