"""Windows with a limit: the answer of the row-at-a-time algorithm, however the input is cut."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.build import World, collect, counted, table
from engine.limiting import between, shedding_of, streamed, taken
from engine.replaying import Naive, arrivals
from sparkshed.engine.eviction.classes import classes_of, is_equality
from sparkshed.engine.eviction.foretelling import Foretelling
from sparkshed.engine.eviction.promise import combinations
from sparkshed.engine.eviction.promised import Promised
from sparkshed.engine.eviction.slots import ACTIVE
from sparkshed.engine.eviction.values import Values
from sparkshed.engine.group import join_group
from sparkshed.engine.measure import value_bytes
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.evicting import Evicting
from sparkshed.engine.strategies.limited import Limited, LimitedGrubJoin
from sparkshed.experiments.windowed import Data, limit_of
from sparkshed.experiments.windowed import run as run_data
from sparkshed.planner.buffering import POLICIES, Buffering
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import (
    Direction,
    EqualityKernel,
    Hop,
    JoinSpec,
    OutputColumn,
    StreamExec,
)
from sparkshed.sql.expr import Col
from sparkshed.sql.predicate import Equality
from sparkshed.workloads.bursty import market_tables

ROWS = {2: 40, 3: 14, 4: 7}
several = settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))


def random_buffering(rng: Random, policy: str) -> Buffering:
    return Buffering(
        policy,
        rows=rng.choice([2, 3, 5, 8, 13, 30]),
        unified=rng.random() < 0.5,
        method=rng.choice([1, 2, 3]),
        percentile=rng.choice([0.0, 0.3, 0.8, 1.0]),
        own=rng.random() < 0.5,
        reserve=rng.choice([0.0, 0.2, 0.4]),
    )


def cuts(rng: Random, spec, world: World) -> list[dict]:
    """All rows in the order in which they arrive, cut anywhere."""
    out: list[dict] = [{}]
    step = rng.choice([1, 3, 10, 1000])
    for place, (_, stream, number) in enumerate(arrivals(spec, world)):
        if place % step == 0 and rng.random() < 0.7:
            out.append({})
        out[-1].setdefault(stream, []).append(world.rows[stream][number])
    return [{s: table(rows, world.streams[s]) for s, rows in batch.items()} for batch in out]


@pytest.mark.parametrize("policy", POLICIES)
@several
@given(seed=st.integers(0, 1 << 40), m=st.integers(2, 4))
def test_the_answer_is_that_of_one_row_at_a_time(policy: str, seed: int, m: int) -> None:
    rng = Random(seed)
    world = World(rng, m, ROWS[m])
    spec = world.spec(rng.choice([3, 1 << 18]), rng.choice([1, 4, 1000]))
    buffering = random_buffering(rng, policy)
    strategy = Limited(Configuration(spec.orders), buffering, np.random.default_rng(seed))
    operator, exact = JoinOperator(spec, strategy), JoinOperator(spec)
    naive = Naive(spec, world, buffering, int(np.random.default_rng(seed).integers(1 << 62)))
    found: Counter = Counter()
    whole: Counter = Counter()
    for batch in cuts(rng, spec, world):
        found += collect(operator, batch, spec.chunk)
        whole += collect(exact, batch, spec.chunk)
        assert operator.window_rows == strategy.buffer.held <= buffering.limit
        if rng.random() < 0.5:
            operator.tidy()
    assert found == naive.run()
    assert found <= whole
    assert strategy.completeness.delivered == sum(found.values())


WINDOW = 300_000


def keyed(
    rows: int = 1200, keys: int = 30, seed: int = 0, m: int = 2
) -> tuple[JoinSpec, dict[int, pa.Table]]:
    """Streams that are joined by keys, of which some are far more frequent, with a word of some length."""
    streams = tuple(
        StreamExec(f"s{i}", ("ts", "k", "id", "w"), ("timestamp", "string", "bigint", "string"), 0)
        for i in range(m)
    )
    columns = [Col(i, 1, "string", f"s{i}.k") for i in range(m)]
    directions = tuple(
        Direction(
            i,
            tuple(
                Hop(t, EqualityKernel((Equality(columns[i], columns[t], False),))) for t in range(m) if t != i
            ),
        )
        for i in range(m)
    )
    bounds = tuple(tuple(0 if i == k else WINDOW for k in range(m)) for i in range(m))
    output = tuple(OutputColumn(i, 2, f"id{i}") for i in range(m)) + (OutputColumn(0, 3, "w"),)
    spec = JoinSpec(streams, bounds, directions, WINDOW // 10, output)
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, keys + 1)
    tables = {}
    for i in range(m):
        times = np.sort(rng.integers(0, rows * 1000, rows))
        values = rng.choice(keys, rows, p=shares / shares.sum())
        tables[i] = pa.table(
            [
                pa.array(times).cast(pa.timestamp("us", "UTC")),
                pa.array([f"key {v}" for v in values]),
                pa.array(np.arange(rows)),
                pa.array(["x" * int(n) for n in rng.integers(0, 50, rows)]),
            ],
            names=["ts", "k", "id", "w"],
        )
    return spec, tables


@pytest.mark.parametrize("sample", [None, 0.3, "auto"])
@pytest.mark.parametrize("policy", [*POLICIES, "priced"])
def test_streaming_gives_the_answer_of_batch_through_restarts(policy: str, sample) -> None:
    spec, tables = keyed()
    if policy == "priced":
        priced = Configuration(spec.orders, price=0.3)
        buffering = Buffering("gdj", rows=100, sample=sample, reserve=0.1)
        shedding = replace(shedding_of(spec, buffering, "grubjoin"), configuration=priced)
    else:
        shedding = shedding_of(spec, Buffering(policy, rows=100, sample=sample, reserve=0.1))
    whole = counted(join_group(spec, 0, tables, shedding, 0))
    found = streamed(spec, shedding, tables, 1_200_000, 90_000)
    assert found == whole
    assert len(found) > 200


def test_what_ever_came_counts_as_much_after_a_restart() -> None:
    data = Data("market", market_tables(3, 300.0, 10, 6.0), 60.0)
    spec, first = data.spec(), pc.min(pa.concat_arrays([own["ts"].combine_chunks() for own in data.tables]))
    since = [pc.cast(pc.cast(pc.subtract(own["ts"], first), pa.int64()), first.type) for own in data.tables]
    tables = {s: own.set_column(0, "ts", since[s]) for s, own in enumerate(data.tables)}
    shedding = shedding_of(spec, Buffering("gdj", rows=100))
    whole = counted(join_group(spec, 0, tables, shedding, 0))
    # Two micro-batches after the last row have none.
    assert streamed(spec, shedding, tables, 310_000_000, 4_000_000) == whole
    assert whole.total() > 1000


def test_a_limit_in_bytes_is_kept() -> None:
    spec, tables = keyed(m=3, rows=500, keys=300)
    strategy = Limited(Configuration(spec.orders), Buffering("gdj", bytes=20_000), np.random.default_rng(0))
    operator, exact = JoinOperator(spec, strategy), JoinOperator(spec)
    found: Counter = Counter()
    whole: Counter = Counter()
    for start in range(0, 500_000, 50_000):
        batch = {s: rows for s, (rows,) in between(tables, start, start + 50_000).items()}
        found += collect(operator, batch, spec.chunk)
        whole += collect(exact, batch, spec.chunk)
        held = [operator.held(s) for s in range(3)]
        size = taken([store.snapshot(w.rows) for store, w in held], strategy.buffering)
        assert 0.9 * strategy.buffer.held <= size <= strategy.buffer.held <= 20_000
    assert Counter() < found < whole


@pytest.mark.parametrize("policy", POLICIES)
def test_a_limit_in_bytes_is_kept_in_the_state_of_a_stream(policy: str) -> None:
    spec, tables = keyed(rows=600)
    shedding = shedding_of(spec, Buffering(policy, bytes=12_000, reserve=0.1))
    whole = counted(join_group(spec, 0, tables, shedding, 0))
    # After every micro-batch the bytes that were written down are counted.
    assert streamed(spec, shedding, tables, 600_000, 40_000) == whole
    assert whole.total() > 100


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3, 4, 5, 6, 7, 8, None], pa.int32()),
        pa.array([True, False, None] * 3),
        pa.array(["", "a", None, "a longer word", "é"] * 2),
        pa.array([[1.5, None], [], None, [2.0] * 17], pa.list_(pa.float64())),
        pa.array([["a", None, "bcd"], [], None], pa.list_(pa.string())),
        pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "yz"}]),
        pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([[{"a": [1, 2], "b": None}], None, []]),
    ],
    ids=lambda own: str(own.type),
)
def test_rows_never_take_more_than_they_cost(values: pa.Array) -> None:
    costs = np.broadcast_to(value_bytes(values), len(values)) + 1
    for first in range(len(values)):
        for last in range(first + 1, len(values) + 1):
            # Copied, as into a piece of its own.
            piece = values.take(pa.array(range(first, last)))
            assert piece.nbytes <= costs[first:last].sum()


def test_with_enough_memory_the_answer_is_exact() -> None:
    spec, tables = keyed(m=3, rows=200, keys=100)
    exact = counted(join_group(spec, 0, tables, None, 0))
    for policy in POLICIES:
        shedding = shedding_of(spec, Buffering(policy, rows=2000))
        assert counted(join_group(spec, 0, tables, shedding, 0)) == exact


def test_work_and_memory_are_limited_together() -> None:
    spec, tables = keyed(m=2)
    exact = counted(join_group(spec, 0, tables, None, 0))
    buffering = Buffering("gdj", rows=100)
    whole = counted(join_group(spec, 0, tables, shedding_of(spec, buffering), 0))
    harvested = Configuration(spec.orders, 0.5, (((0, 1, 2, 3),),) * 2, (((0, 1, 2, 3),),) * 2, shred=0.1)
    strategy = LimitedGrubJoin(harvested, buffering, np.random.default_rng(0))
    operator = JoinOperator(spec, strategy)
    found: Counter = Counter()
    for start in range(0, 1_200_000, 60_000):
        found += counted(
            operator.process({s: r for s, (r,) in between(tables, start, start + 60_000).items()})
        )
        assert operator.window_rows <= 100
    assert found <= exact
    assert 0.2 * sum(whole.values()) < sum(found.values())
    assert strategy.completeness.delivered == sum(found.values())


def test_room_is_left_unused_by_rows_that_are_not_worth_the_work_on_them() -> None:
    spec, tables = keyed(rows=4000, keys=400)
    held, found = {}, {}
    for price in (0.0, 0.6):
        strategy = LimitedGrubJoin(
            Configuration(spec.orders), Buffering("gdj", rows=120), np.random.default_rng(0)
        )
        operator = JoinOperator(spec, strategy)
        run(operator, tables, 0, 1_000_000)
        strategy.configure(Configuration(spec.orders, price=price))
        run(operator, tables, 1_000_000, 1_200_000)
        held[price] = operator.window_rows
        found[price] = run(operator, tables, 1_200_000, 1_230_000).total()
    # Step by step: as many rows arrived as there is room for, a little more than three times.
    assert held[0.0] > 110
    assert 15 < held[0.6] < 60
    assert found[0.6] / held[0.6] > 1.3 * found[0.0] / held[0.0]
    # Where work costs nothing any more, there is room for all again.
    strategy.configure(Configuration(spec.orders))
    run(operator, tables, 1_230_000, 3_000_000)
    assert operator.window_rows > 110


def run(operator: JoinOperator, tables: dict[int, pa.Table], start: int, stop: int) -> Counter:
    """What an operator finds in a stretch of some streams."""
    return counted(operator.process({s: r for s, (r,) in between(tables, start, stop).items()}))


def test_the_estimate_of_what_is_missed_is_right_on_average() -> None:
    spec, tables = keyed(rows=1500)
    exact = sum(counted(join_group(spec, 0, tables, None, 0)).values())
    covered, totals = 0, []
    for seed in range(12):
        strategy = Limited(
            Configuration(spec.orders), Buffering("lru", rows=120, reserve=0.25), np.random.default_rng(seed)
        )
        operator = JoinOperator(spec, strategy)
        for start in range(0, 1_500_000, 75_000):
            for _ in operator.process({s: r for s, (r,) in between(tables, start, start + 75_000).items()}):
                pass
        told = strategy.completeness
        low, high = told.interval
        covered += low <= told.delivered / exact <= high
        totals.append(told.delivered + told.missed)
    assert covered >= 9
    assert abs(np.mean(totals) / exact - 1) < 0.05


def test_what_gdj_learns_is_as_good_as_the_best_percentile() -> None:
    spec, tables = keyed(rows=4000, keys=400)
    found = {}
    for percentile in (0.0, 0.03, 0.1, 0.3, 0.8, None):
        shedding = shedding_of(spec, Buffering("gdj", rows=200, percentile=percentile))
        found[percentile] = sum(counted(join_group(spec, 0, tables, shedding, 0)).values())
    learned = found.pop(None)
    assert min(found.values()) < 0.9 * max(found.values())
    assert learned > 0.98 * max(found.values())


@pytest.mark.parametrize("strategy", [Limited, LimitedGrubJoin])
@several
@given(seed=st.integers(0, 1 << 40), m=st.integers(2, 4))
def test_what_gdj_learns_does_not_depend_on_cuts(strategy: type[Evicting], seed: int, m: int) -> None:
    rng = Random(seed)
    world = World(rng, m, ROWS[m])
    spec = world.spec(rng.choice([3, 1 << 18]), rng.choice([1, 4, 1000]))
    buffering = replace(random_buffering(rng, "gdj"), percentile=None)
    whole = {s: table(rows, world.streams[s]) for s, rows in enumerate(world.rows) if rows}
    answers = []
    for batches in ([whole], cuts(rng, spec, world)):
        own = strategy(Configuration(spec.orders), buffering, np.random.default_rng(seed))
        operator = JoinOperator(spec, own)
        found: Counter = Counter()
        for batch in batches:
            found += collect(operator, batch, spec.chunk)
            assert operator.window_rows == own.buffer.held <= buffering.limit
        answers.append(found)
    exact = collect(JoinOperator(spec), whole, spec.chunk)
    assert all(found <= exact for found in answers)
    # Rows of limited joins that shed work, too, draw lots batch by batch.
    assert answers[0] == answers[1] or strategy is LimitedGrubJoin


def test_weights_are_those_with_which_features_foretell() -> None:
    rng = np.random.default_rng(0)
    foretelling = Foretelling(np.array([1.0, 1.0, 1.0]))
    for _ in range(200):
        features = rng.random((3, 50))
        lengths = rng.random(50)
        foretelling.learn(features, lengths, np.array([0.5, 0.0, 2.0]) @ features * lengths)
    # What is believed at first has a 200th of the weight of the evidence, and never less.
    assert foretelling.weights == pytest.approx([0.5, 0.0, 2.0], abs=0.1)


@pytest.mark.parametrize(("m", "unified"), [(2, True), (2, False), (3, True), (4, False)])
def test_rows_leave_by_buckets_as_they_would_one_by_one(m: int, unified: bool, monkeypatch) -> None:
    spec, tables = keyed(rows=400, keys=12 if m == 2 else 60, m=m)
    shedding = shedding_of(spec, Buffering("gdj", rows=60, unified=unified))
    found = counted(join_group(spec, 0, tables, shedding, 0))
    monkeypatch.setattr(Promised, "ranks", lambda self, groups: None)
    monkeypatch.setattr(Promised, "refresh", _refresh_every_row)
    assert counted(join_group(spec, 0, tables, shedding, 0)) == found
    assert found.total() > 100


def test_few_rows_are_looked_at_more_often_than_many() -> None:
    spec, _ = keyed()

    def intervals(kind: type[Limited], room: int) -> list[int]:
        strategy = kind(Configuration(spec.orders), Buffering("gdj", rows=room), np.random.default_rng(0))
        JoinOperator(spec, strategy)
        assert isinstance(strategy.buffer.policy, Promised)
        return [strategy.buffer.policy.interval(active) for active in (0, room // 2, room)]

    assert intervals(Limited, 48) == [4, 4, 6]
    assert intervals(Limited, 256) == [8, 32, 64]
    assert intervals(Limited, 4096) == [16, 1024, 2048]
    # With an age curve a look is at each row.
    assert intervals(LimitedGrubJoin, 48) == [16, 16, 16]
    assert intervals(LimitedGrubJoin, 4096) == [16, 512, 1024]


def _refresh_every_row(policy: Promised, seq: int, now: int) -> None:
    """What rows are worth, row by row, for a buffer that looks at each of them."""
    policy.promise.look(seq)
    active = policy.slots.of(ACTIVE)
    policy.slots.priorities[active] = policy.promise.of(active)


def test_arrivals_are_foretold_by_what_they_follow() -> None:
    rng = np.random.default_rng(3)
    values, rows = Values(2, 64), 0
    for _ in range(400):
        # Value 1 comes in the second stream whenever it came in the first; value 2 at any time.
        keys = rng.choice([1, 2, 3, 4], 16, p=[0.1, 0.3, 0.3, 0.3])
        both = np.concatenate([keys, keys[keys == 1]])
        sides = np.concatenate([np.where(keys == 1, 0, rng.integers(0, 2, 16)), np.ones((keys == 1).sum())])
        values.arrive(sides.astype(np.int64), both, rows)
        rows += len(both)
        values.look(rows)
    share = rows / 64
    code = values.codes[1]
    assert values.rates[1, code] == pytest.approx(400 * 1.6 / share, rel=0.25)
    assert values.rates[:, values.codes[2]].sum() == pytest.approx(400 * 4.8 / share, rel=0.25)


def test_what_ever_came_is_counted_by_the_arrival() -> None:
    values = Values(2, 8)
    keys, sides = np.array([5, 5, 6, 5]), np.array([0, 1, 1, 0])
    codes, _, lasting = values.arrive(sides, keys, 0)
    assert lasting.tolist() == [[1, 1, 0, 2], [0, 1, 1, 1]]
    values.look(32)
    # The buffer filled four times since then.
    assert values.lasting[:, codes[0]].tolist() == [2 / 4, 1 / 4]
    *_, lasting = values.arrive(np.array([0]), np.array([5]), 32)
    assert lasting.tolist() == [[3 / 4], [1 / 4]]
    codes, _, lasting = values.risen()
    assert codes.tolist() == [0] and lasting.tolist() == [[3 / 4], [1 / 4]]


def test_values_that_are_quiet_stay_for_what_ever_came_of_them(monkeypatch) -> None:
    markets = [Data("market", market_tables(m, 420.0, seed, 6.0), 60.0) for m in (3, 5) for seed in (11, 12)]
    found = [run_data(data, limit_of(data, 0.2)).results for data in markets]
    monkeypatch.setattr("sparkshed.engine.eviction.promise.balance", lambda lately, ever: 0.0)
    without = [run_data(data, limit_of(data, 0.2)).results for data in markets]
    assert np.mean(np.log(found)) > np.mean(np.log(without)) + 0.02


def test_a_share_of_the_rows_is_held_for_what_ever_came() -> None:
    data = Data("market", market_tables(3, 200.0, 10, 6.0), 60.0)
    spec = data.spec()
    strategy = Limited(Configuration(spec.orders), limit_of(data, 0.3), np.random.default_rng(0))
    for _ in JoinOperator(spec, strategy).process(dict(enumerate(data.tables))):
        pass
    assert isinstance(strategy.buffer.policy, Promised)
    promise = strategy.buffer.policy.promise
    promise.look(strategy.buffer._seq)
    active = strategy.buffer.slots.of(ACTIVE)
    streams, codes = strategy.buffer.slots.streams.take(active), promise.codes(active)
    lately = combinations(promise.values[0].rates, promise._held[0][:, :-1])[streams, codes]
    assert float(np.mean(promise.of(active) > lately)) == pytest.approx(0.4, abs=0.06)


def test_equal_columns_make_one_class_over_all_streams() -> None:
    spec, _ = keyed(m=4, rows=10)
    (own,) = classes_of(spec)
    assert own.streams == (0, 1, 2, 3) and own.columns == ((1,),) * 4
    assert is_equality(spec)


def test_rare_values_are_forgotten_and_frequent_ones_are_not() -> None:
    spec, tables = keyed(rows=3000, keys=2500)
    strategy = Limited(Configuration(spec.orders), Buffering("gdj", rows=20), np.random.default_rng(0))
    operator = JoinOperator(spec, strategy)
    for start in range(0, 3_000_000, 100_000):
        for _ in operator.process({s: r for s, (r,) in between(tables, start, start + 100_000).items()}):
            pass
    assert isinstance(strategy.buffer.policy, Promised)
    (values,) = strategy.buffer.policy.promise.values
    codes, counts = (values.notes()[name] for name in ("codes", "counts"))
    assert len(codes) <= 8 * 20 + 200 and counts.shape[2] == len(codes)
    often = pa.concat_arrays([tables[s]["k"].combine_chunks() for s in (0, 1)]).value_counts()
    assert counts[:, -1].max() > 0.8 * max(often.field("counts").to_pylist()) / 2


def test_counts_of_a_sketch_are_close() -> None:
    spec, tables = keyed()
    exactly = shedding_of(spec, Buffering("prob", rows=100))
    sketched = replace(exactly, buffering=Buffering("prob", rows=100, sketch=256))
    totals = [sum(counted(join_group(spec, 0, tables, own, 0)).values()) for own in (exactly, sketched)]
    assert abs(totals[1] / totals[0] - 1) < 0.05
