"""Several joins of the same streams in one buffer: a row is held once, and any join gives it credit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.build import World, collect, counted, table
from engine.limiting import between, shedding_of, streamed, taken
from engine.replaying import Naive
from engine.test_limited import ROWS, WINDOW, cuts, random_buffering, several
from sparkshed.engine import streaming
from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.group import join_group
from sparkshed.engine.keeping import MemoryStore
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.limited import Limited
from sparkshed.planner.buffering import POLICIES, Buffering
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import Direction, EqualityKernel, Hop, JoinSpec, OutputColumn, StreamExec
from sparkshed.planner.streaming import Hosts, StreamingPlan
from sparkshed.sql.expr import Col
from sparkshed.sql.predicate import Equality


def limited(spec: JoinSpec, buffering: Buffering, seed: int) -> Limited:
    return Limited(Configuration(spec.orders), buffering, np.random.default_rng(seed))


@pytest.mark.parametrize("policy", POLICIES)
@several
@given(seed=st.integers(0, 1 << 40), m=st.integers(2, 4), joins=st.integers(2, 3))
def test_the_answer_is_that_of_one_row_at_a_time(policy: str, seed: int, m: int, joins: int) -> None:
    rng = Random(seed)
    world = World(rng, m, ROWS[m])
    others = tuple(world.another() for _ in range(joins - 1))
    chunk, basic = rng.choice([3, 1 << 18]), rng.choice([1, 4, 1000])
    beside = tuple(other.spec(chunk, basic) for other in others)
    spec = replace(world.spec(chunk, basic), beside=beside)
    buffering = random_buffering(rng, policy)
    strategy = limited(spec, buffering, seed)
    operator, exact = JoinOperator(spec, strategy), JoinOperator(spec)
    naive = Naive(spec, world, buffering, int(np.random.default_rng(seed).integers(1 << 62)), others)
    found: Counter = Counter()
    whole: Counter = Counter()
    for batch in cuts(rng, spec, world):
        found += collect(operator, batch, chunk)
        whole += collect(exact, batch, chunk)
        assert operator.window_rows == strategy.buffer.held <= buffering.limit
        if rng.random() < 0.5:
            operator.tidy()
    assert found == naive.run()
    assert found <= whole
    assert strategy.completeness.delivered == sum(found.values())


@several
@given(seed=st.integers(0, 1 << 40), m=st.integers(2, 4))
def test_without_a_limit_each_join_gives_what_it_gives_alone(seed: int, m: int) -> None:
    rng = Random(seed)
    world = World(rng, m, ROWS[m])
    other = world.another()
    alone = [world.spec(1 << 18, 4), other.spec(1 << 18, 4)]
    both = JoinOperator(replace(alone[0], beside=(alone[1],)))
    batch = {s: table(rows, world.streams[s]) for s, rows in enumerate(world.rows)}
    found = collect(both, batch, 1 << 18)
    for number, spec in enumerate(alone):
        own = Counter({result[:-1]: count for result, count in found.items() if result[-1] == number})
        assert own == collect(JoinOperator(spec), batch, 1 << 18)


#: The second join waits longer.
REACHES = (WINDOW, 3 * WINDOW // 2)


def two_keys(rows: int = 900) -> tuple[JoinSpec, dict[int, pa.Table]]:
    """Two streams that are joined by one column within some time, and by another one within more."""
    streams = tuple(
        StreamExec(f"s{i}", ("ts", "k", "g", "id"), ("timestamp", "bigint", "string", "bigint"), 0)
        for i in range(2)
    )
    output = tuple(OutputColumn(i, 3, f"id{i}") for i in range(2))
    specs = []
    for column, reach in ((1, REACHES[0]), (2, REACHES[1])):
        sides = [Col(i, column, streams[0].types[column], f"s{i}.{column}") for i in range(2)]
        kernel = EqualityKernel((Equality(sides[0], sides[1]),))
        directions = tuple(Direction(i, (Hop(1 - i, kernel),)) for i in range(2))
        specs.append(JoinSpec(streams, ((0, reach), (reach, 0)), directions, WINDOW // 10, output))
    rng = np.random.default_rng(3)
    tables = {}
    for i in range(2):
        columns = {
            "ts": pa.array(np.sort(rng.integers(0, rows * 1000, rows))).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(rng.zipf(1.3, rows) % 40),
            "g": pa.array([f"group {v}" for v in rng.zipf(1.5, rows) % 30]),
            "id": pa.array(np.arange(rows)),
        }
        tables[i] = pa.table(columns)
    return replace(specs[0], beside=(specs[1],)), tables


@pytest.mark.parametrize("policy", POLICIES)
def test_streaming_gives_the_answer_of_batch_through_restarts(policy: str) -> None:
    spec, tables = two_keys()
    shedding = shedding_of(spec, Buffering(policy, rows=100, reserve=0.1))
    whole = counted(join_group(spec, 0, tables, shedding, 0))
    found = streamed(spec, shedding, tables, 900_000, 70_000)
    assert found == whole
    assert {join for *_, join in found} == {0, 1}


def test_one_buffer_is_worth_more_than_two_of_half_the_size() -> None:
    spec, tables = two_keys()
    exact = counted(join_group(spec, 0, tables, None, 0))
    shared = counted(join_group(spec, 0, tables, shedding_of(spec, Buffering("gdj", rows=120)), 0))
    apart = 0
    for own in (replace(spec, beside=()), *spec.beside):
        half = shedding_of(own, Buffering("gdj", rows=60))
        apart += counted(join_group(own, 0, tables, half, 0)).total()
    assert shared <= exact
    assert shared.total() > 1.2 * apart


def test_completeness_is_that_of_all_joins() -> None:
    spec, tables = two_keys()
    exact = counted(join_group(spec, 0, tables, None, 0)).total()
    totals = []
    for seed in range(8):
        strategy = limited(spec, Buffering("lru", rows=120, reserve=0.25), seed)
        operator, found = JoinOperator(spec, strategy), 0
        for start in range(0, 900_000, 90_000):
            batch = {s: rows for s, (rows,) in between(tables, start, start + 90_000).items()}
            found += counted(operator.process(batch)).total()
        assert strategy.completeness.delivered == found
        totals.append(found + strategy.completeness.missed)
    assert abs(np.mean(totals) / exact - 1) < 0.05


def test_bytes_of_a_row_count_once() -> None:
    spec, tables = two_keys()
    strategy = limited(spec, Buffering("gdj", bytes=9_000), 0)
    operator = JoinOperator(spec, strategy)
    for start in range(0, 900_000, 90_000):
        batch = {s: rows for s, (rows,) in between(tables, start, start + 90_000).items()}
        assert counted(operator.process(batch)).total()
        held = [operator.held(s) for s in range(2)]
        size = taken([store.snapshot(w.rows) for store, w in held], strategy.buffering)
        assert 0.9 * strategy.buffer.held <= size <= strategy.buffer.held <= 9_000


def test_rows_stay_for_the_join_that_waits_longest() -> None:
    spec, _ = two_keys()
    assert spec.retentions == (REACHES[1], REACHES[1])
    assert spec.beside[0].retentions == (REACHES[1], REACHES[1])
    assert replace(spec, beside=()).retentions == (REACHES[0], REACHES[0])


@pytest.mark.parametrize("shared_first", [True, False])
def test_the_state_of_other_joins_is_refused(shared_first: bool) -> None:
    spec, tables = two_keys(100)
    shedding = shedding_of(spec, Buffering("gdj", rows=50))
    plan = StreamingPlan(spec, Hosts(1), shedding, False, (False, False))
    alone = replace(plan, spec=replace(spec, beside=()))
    first, second = (plan, alone) if shared_first else (alone, plan)
    store = MemoryStore()
    own = streaming.StreamingJoin(first, "mixed", 0, store, lambda: 0.0)
    assert list(own.process({s: [rows] for s, rows in tables.items()}, None, None))
    with pytest.raises(CheckpointError, match="joins that share the memory"):
        streaming.StreamingJoin(second, "mixed", 0, store, lambda: 0.0)


def test_joins_of_other_streams_cannot_share_windows() -> None:
    spec, _ = two_keys()
    with pytest.raises(ValueError, match="same streams and basic windows"):
        replace(spec, basic=2 * spec.basic)
