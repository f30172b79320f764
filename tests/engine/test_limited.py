"""Windows with a limit: the answer of the row-at-a-time algorithm, however the input is cut."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.build import World, collect, table
from engine.replaying import Naive, arrivals
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.limited import Limited
from sparkshed.planner.buffering import POLICIES, Buffering
from sparkshed.planner.configuration import Configuration

ROWS = {2: 40, 3: 14, 4: 7}
several = settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))


def random_buffering(rng: Random, policy: str) -> Buffering:
    return Buffering(
        policy,
        rows=rng.choice([2, 3, 5, 8, 13, 30]),
        unified=rng.random() < 0.5,
        method=rng.choice([1, 2, 3]),
        percentile=rng.choice([0.0, 0.3, 0.8, 1.0]),
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
