"""However the input is cut into micro-batches, the results are those of the naive join."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.build import World, collect, table
from engine.naive import naive_join, time_of
from sparkshed.engine.operator import JoinOperator

ROWS = {2: 14, 3: 8, 4: 5, 5: 4}
CHUNKS = [1, 3, 7, 1 << 18]
slow = settings(deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))


def batches(world: World, rng: Random) -> list[dict[int, list]]:
    count = rng.randint(1, 4)
    out: list[dict[int, list]] = [{} for _ in range(count)]
    for i, rows in enumerate(world.rows):
        for row in rng.sample(rows, len(rows)):
            out[rng.randrange(count)].setdefault(i, []).append(row)
    return out


@pytest.mark.parametrize("m", [2, 3, 4, 5])
@slow
@given(seed=st.integers(0, 1 << 40))
def test_any_split_equals_the_naive_join(m: int, seed: int) -> None:
    rng = Random(seed)
    world = World(rng, m, ROWS[m])
    spec = world.spec(rng.choice(CHUNKS), rng.choice([1, 4, 10, 1000]))
    op = JoinOperator(spec)
    found: Counter = Counter()
    for batch in batches(world, rng):
        found += collect(op, {i: table(r, world.streams[i]) for i, r in batch.items()}, spec.chunk)
    assert found == naive_join(spec, world.predicates, world.rows, world.ids)
    assert op.statistics.results == sum(found.values())
    assert [s.arrived for s in op.statistics.streams] == [len(rows) for rows in world.rows]


@slow
@given(seed=st.integers(0, 1 << 40))
def test_expiry_loses_nothing_that_can_still_match(seed: int) -> None:
    rng = Random(seed)
    world = World(rng, rng.choice([2, 3]), 10)
    spec = world.spec(rng.choice(CHUNKS), rng.choice([1, 4]))
    op = JoinOperator(spec)
    timed = sorted(
        (time, i, n)
        for i, rows in enumerate(world.rows)
        for n, row in enumerate(rows)
        if (time := time_of(spec, i, row)) is not None
    )
    found: Counter = Counter()
    step = rng.randint(1, 6)
    for start in range(0, len(timed), step):
        op.expire(timed[start][0])
        batch: dict[int, list] = {}
        for _, i, n in timed[start : start + step]:
            batch.setdefault(i, []).append(world.rows[i][n])
        found += collect(op, {i: table(r, world.streams[i]) for i, r in batch.items()}, spec.chunk)
    assert found == naive_join(spec, world.predicates, world.rows, world.ids)


@slow
@given(seed=st.integers(0, 1 << 40))
def test_work_does_not_depend_on_the_chunk_size(seed: int) -> None:
    world = World(Random(seed), 3, 8)
    order = batches(world, Random(seed))
    work = []
    for chunk in (2, 1 << 18):
        world.rng = Random(seed)
        op = JoinOperator(world.spec(chunk, 4))
        for batch in order:
            collect(op, {i: table(r, world.streams[i]) for i, r in batch.items()}, chunk)
        work.append([(d.comparisons, d.results) for d in op.statistics.directions])
    assert work[0] == work[1]
