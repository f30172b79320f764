"""Hosts that get their rows by a router find together what one host finds, whatever is told to the router."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, defaultdict
from dataclasses import replace
from itertools import permutations
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.build import World, collect, counted
from engine.test_strategies import batches
from engine.test_streaming import cameras, copied, cut_by_time
from sparkshed.engine import host as memory
from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.keeping import MemoryStore
from sparkshed.engine.kinds import DECISION, REPORT, TOLD
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.relaying import RelayHost
from sparkshed.engine.routers import routing_of
from sparkshed.engine.routing import Sent, as_told, packed
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.engine.wire import from_blob
from sparkshed.experiments.joins import SECOND, camera_join
from sparkshed.planner.diffusion.plan import RouterPlan, aligned_plan, coordinated_plan, stages_of
from sparkshed.planner.streaming import Hosts, Report, StreamingPlan


@pytest.fixture(autouse=True)
def fresh_workers():
    memory._cache = OrderedDict()


class Notebook:
    def __init__(self, notes: bytes | None = None) -> None:
        self.notes = notes

    def load(self) -> bytes | None:
        return self.notes

    def save(self, notes: bytes) -> None:
        self.notes = notes


class Cluster:
    """A router and its hosts; a micro-batch can be tried before it counts."""

    def __init__(self, plan: StreamingPlan) -> None:
        self.plan = plan
        self.notebook = Notebook()
        self.stores: dict[tuple[int, int], MemoryStore] = defaultdict(MemoryStore)
        self.reports: list[Report] = []

    def attempt(self, rng: Random, batch, told, watermark) -> None:
        """What Spark repeats."""
        other = Cluster(self.plan)
        other.notebook = Notebook(self.notebook.notes)
        other.stores.update({key: copied(store) for key, store in self.stores.items()})
        other.step(rng, batch, told, watermark)

    def step(self, rng: Random, batch, told=None, watermark=None) -> list[pa.RecordBatch]:
        rows = []
        for stream, table in batch.items():
            # Spark has several tasks for a stream.
            cut = rng.randint(0, table.num_rows)
            for part in (table.slice(0, cut), table.slice(cut)):
                rows += packed(part, stream, self.plan)
        rng.shuffle(rows)
        sent = list(routing_of(self.plan, self.notebook, lambda: 0.0).process(rows, told, watermark))
        rng.shuffle(sent)
        found = self._aligned(sent) if self.plan.hosts.router.kind == "atr" else self._relayed(sent)
        self.reports = [Report.from_json(json.loads(json.dumps(own.to_json()))) for own in self.reports]
        return found

    def _aligned(self, sent: list[Sent]) -> list[pa.RecordBatch]:
        found, self.reports = [], []
        for number in sorted({own.host for own in sent}):
            mail = [own for own in sent if own.host == number]
            told = next(json.loads(own.blob) for own in mail if own.stream == TOLD)
            decision = next(
                (json.loads(own.blob)["decision"] for own in mail if own.stream == DECISION), None
            )
            rows = defaultdict(list)
            for own in mail:
                if own.stream >= 0:
                    rows[own.stream].append(from_blob(own.blob))
            store = self.stores[number, 0]
            join = StreamingJoin(self.plan.of_hosts, "q", number, store, lambda: 0.0)
            found += join.process(rows, decision, told["watermark"])
            as_told(join.report, told)
            self.reports.append(join.report)
        return found

    def _relayed(self, sent: list[Sent]) -> list[pa.RecordBatch]:
        results: list[pa.RecordBatch] = []
        stages = len(self.plan.spec.streams) - 1
        for stage in range(stages):
            further: list[Sent] = []
            for number in sorted({own.host for own in sent}):
                mail = [own for own in sent if own.host == number]
                store = self.stores[number, stage]
                own = RelayHost(self.plan.of_hosts, "q", number, stage, store, lambda: 0.0)
                for out in own.process(mail):
                    if isinstance(out, Sent):
                        further.append(out)
                    else:
                        results.append(out)
            sent = further
        assert {own.stream for own in sent} <= {REPORT}
        self.reports = [Report.from_json(json.loads(own.blob)) for own in sent]
        return results


def plan_of(spec, hosts: int, router: RouterPlan, **changes) -> StreamingPlan:
    hosted = Hosts(hosts, router=router)
    return replace(
        StreamingPlan(spec, hosted, None, False, (False,) * len(spec.streams), expires=False), **changes
    )


def orders_of(spec, origin: int) -> list[tuple[int, ...]]:
    """Those that no hop of is a cross product."""
    others = [own for own in range(len(spec.streams)) if own != origin]
    return [
        order
        for order in permutations(others)
        if all((origin, frozenset((origin, *order[:n])), own) in spec.hops for n, own in enumerate(order))
    ]


def any_told(rng: Random, number: int, hosts: int, m: int) -> dict:
    routing = {
        "number": number,
        "loads": [rng.random() for _ in range(hosts)],
        "length": rng.choice([1, 2, 9]),
        "master": rng.randrange(m),
        "matches": [[rng.random() * 3 for _ in range(m)] for _ in range(m)],
    }
    return {"decision": None, "routing": routing}


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(2, 4), st.sampled_from(["atr", "ctr"]))
def test_all_hosts_find_together_what_one_host_finds(seed, m, kind):
    rng = Random(seed)
    world = World(rng, m, 10)
    spec = world.spec(chunk=rng.choice([3, 1000]), basic=rng.choice([1, 3, 50]))
    hosts = rng.choice([1, 2, 3, 7])
    if kind == "atr":
        router = replace(aligned_plan(spec.bounds, spec.basic, hosts), length=rng.choice([1, 3]))
    else:
        orders = tuple(
            tuple(dict.fromkeys((order, *rng.sample(others, min(len(others), rng.randrange(3))))))
            for origin, order in enumerate(spec.orders)
            for others in (orders_of(spec, origin),)
        )
        router = coordinated_plan(spec.basic, orders)
    cluster = Cluster(plan_of(spec, hosts, replace(router, tick=rng.choice([1, 2, 10]))))
    exact, whole, found, arrived = JoinOperator(spec), Counter(), Counter(), 0
    workers: list[OrderedDict] = [OrderedDict(), OrderedDict()]
    for number, batch in enumerate(batches(rng, world, 4), 1):
        whole += collect(exact, batch, spec.chunk)
        arrived += sum(table.num_rows for table in batch.values())
        told = any_told(rng, number, hosts, m) if rng.random() < 0.6 else None
        memory._cache = rng.choice(workers)
        if rng.random() < 0.3:
            cluster.attempt(rng, batch, told, None)
            memory._cache = rng.choice(workers)
        results = cluster.step(rng, batch, told)
        found += counted(results)
        reports = cluster.reports
        assert sum(own.completeness.delivered for own in reports) == sum(r.num_rows for r in results)
        for stream, table in batch.items():
            assert sum(own.streams[stream]["arrived"] for own in reports) == table.num_rows
    assert found == whole


@pytest.mark.parametrize("kind", ["atr", "ctr", "ctr with orders"])
def test_rows_expire_and_late_rows_are_counted(kind):
    rng, spec = Random(5), camera_join(3).spec
    if kind == "atr":
        router = aligned_plan(spec.bounds, spec.basic, 5)
    else:
        others = tuple(tuple(permutations(own)) for own in spec.orders)
        orders = others if "orders" in kind else tuple((own,) for own in spec.orders)
        router = coordinated_plan(spec.basic, orders)
    cluster = Cluster(plan_of(spec, 5, router, expires=True))
    exact, late, held = JoinOperator(spec), 0, []
    tables = cameras(60, 20.0)
    start = min(int(t.column("ts").cast(pa.int64())[0].as_py()) for t in tables)
    for number, batch in enumerate(cut_by_time(tables, 60, 1), 1):
        watermark = start + (number - 3) * SECOND + 300_000
        whole = Counter()
        exact.expire(watermark)
        whole += collect(exact, batch, spec.chunk)
        told = any_told(rng, number, 5, 3) if number % 3 == 0 else None
        old = {0: tables[0].slice(0, 7)} if number == 30 else {}
        with_old = {s: pa.concat_tables([t, *([old[s]] if s in old else [])]) for s, t in batch.items()}
        assert counted(cluster.step(rng, with_old, told, watermark)) == whole
        late += sum(own.streams[0]["late"] for own in cluster.reports)
        joined = sum(own.streams[0]["joined"] for own in cluster.reports)
        assert round(joined) == batch[0].num_rows
        held.append(sum(own.rows for own in cluster.reports))
    assert late == 7
    # Windows of 20 s at 20 rows/s: what is held does not grow any more.
    assert max(held[40:]) <= 1.3 * max(held[25:40])
    report = next(own.routing for own in cluster.reports if own.routing)
    assert 0 < report["table"] < 400
    assert sum(report["bytes"]) > 0


def test_a_router_refuses_the_table_of_another_plan():
    spec = camera_join(3).spec
    notebook = Notebook()
    one = plan_of(spec, 5, aligned_plan(spec.bounds, spec.basic, 5))
    list(routing_of(one, notebook, lambda: 0.0).process([], None, None))
    other = replace(one, hosts=replace(one.hosts, count=6))
    with pytest.raises(CheckpointError, match="diffuse=atr:5"):
        routing_of(other, notebook, lambda: 0.0)


@pytest.mark.parametrize("kind", ["atr", "ctr"])
def test_rows_are_routed_alike_in_whatever_order_they_come(kind):
    rng, spec = Random(4), camera_join(3).spec
    own = aligned_plan(spec.bounds, spec.basic, 5)
    if kind == "ctr":
        own = coordinated_plan(spec.basic, tuple((order,) for order in spec.orders))
    plan, notebooks = plan_of(spec, 5, own), (Notebook(), Notebook())
    for number, batch in enumerate(cut_by_time(cameras(20, 20.0), 20, 4), 1):
        rows = [one for stream, table in batch.items() for one in packed(table, stream, plan)]
        told = any_told(rng, number, 5, 3)
        sent = []
        for notebook in notebooks:
            rng.shuffle(rows)
            sent.append(Counter(routing_of(plan, notebook, lambda: 0.0).process(rows, told, None)))
        assert sent[0] == sent[1]
        assert notebooks[0].notes == notebooks[1].notes


def test_copies_of_rows_that_expire_count_as_parts_in_batches_without_rows():
    spec = camera_join(2).spec
    cluster = Cluster(plan_of(spec, 3, aligned_plan(spec.bounds, spec.basic, 3), expires=True))
    (batch,) = cut_by_time(cameras(10, 20.0), 10, 10)
    batch = {stream: batch[stream] for stream in range(2)}
    cluster.step(Random(1), batch)
    start = int(batch[0].column("ts").cast(pa.int64())[0].as_py())
    cluster.step(Random(1), {}, None, start + 1000 * SECOND)
    for stream, table in batch.items():
        assert sum(own.streams[stream]["expired"] for own in cluster.reports) == pytest.approx(table.num_rows)
    assert sum(own.rows for own in cluster.reports) == 0


@pytest.mark.parametrize("seconds", [25, 40])
def test_hosts_of_an_era_that_is_over_keep_nothing(seconds):
    rng, spec = Random(2), camera_join(3).spec
    cluster = Cluster(plan_of(spec, 3, aligned_plan(spec.bounds, spec.basic, 3), expires=True))
    tables = cameras(200, 5.0)
    start = min(int(t.column("ts").cast(pa.int64())[0].as_py()) for t in tables)
    lanes = []
    for number, batch in enumerate(cut_by_time(tables, 200, seconds)):
        told = any_told(rng, 1, 3, 3) if number == 1 else None
        if told:
            told["routing"]["master"] = 2 if cluster.plan.hosts.master != 2 else 1
        watermark = start + seconds * (number - 1) * SECOND
        cluster.step(rng, batch, told, watermark)
        lanes.append({own.host // 3 for own in cluster.reports})
    over = max(number for number, own in enumerate(lanes) if own == {0, 1})
    assert 1 < over < 8
    assert lanes[over + 1 :] == [{1}] * (len(lanes) - over - 1)
    left = [store.pieces for (host, _), store in cluster.stores.items() if host < 3]
    assert left == [{}, {}, {}]


def test_stages_hold_what_is_probed_in_them_only():
    spec = camera_join(3).spec
    orders = tuple((own,) for own in spec.orders)
    cluster = Cluster(plan_of(spec, 4, coordinated_plan(spec.basic, orders)))
    for batch in cut_by_time(cameras(10, 20.0), 10, 2):
        cluster.step(Random(1), batch)
    written = {(stage, key[0]) for (_, stage), own in cluster.stores.items() for key in own.pieces}
    assert written == {(stage, stream) for stream, own in enumerate(stages_of(orders)) for stage in own}
