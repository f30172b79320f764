"""`adaptive` on the paper's streams: budgets are kept with every kernel, and adaptations do what they say."""

from __future__ import annotations

import pytest

from sparkshed.engine.threads import one_thread
from sparkshed.experiments.harness import Forced, Load
from sparkshed.experiments.joins import camera_join, key_join, overlap_join
from sparkshed.experiments.output import tables_of
from sparkshed.experiments.selective import DIRECTION, RATE, TIME, select, whole
from sparkshed.workloads.cameras import Cameras
from sparkshed.workloads.drifting import drifting_keys, drifting_sets, paper_drift

SECONDS = 90.0
RATES = [(SECONDS, 60.0)]
DRIFT = paper_drift(10, 0.8)
KEYS = paper_drift(10, 0.8, items=200)
#: Joins and their streams, by what finds partners.
JOINS = {
    "every row": lambda: (overlap_join(10, 1), drifting_sets(DRIFT, RATES, vectors=True)),
    "sets": lambda: (overlap_join(10, 1, 2, indexed=True), drifting_sets(DRIFT, RATES)),
    "keys": lambda: (key_join(10, 1), drifting_keys(KEYS, [(SECONDS, 200.0)])),
    "band": lambda: (
        camera_join(2, window=10, basic=1, indexed=True),
        tables_of(Cameras((0, 3), (2, 20)), 200.0, SECONDS, seed=0),
    ),
}
LOAD = Load(seconds=SECONDS, warm_up=20.0, tick=0.5)


@pytest.fixture(scope="module", params=JOINS)
def joined(request):
    """A join, its streams, and the exact run."""
    join, tables = JOINS[request.param]()
    with one_thread():
        yield join, tables, whole(join, tables, LOAD)


@pytest.mark.parametrize("z", [0.1, 0.4])
def test_budgets_are_kept_on_average(joined, z):
    join, tables, full = joined
    own = select(join, tables, LOAD, throttle=Forced([z])).outcome
    assert own.statistics.work == pytest.approx(z * full.statistics.work, rel=0.05)
    assert 0 < own.results < full.results


def test_each_adaptation_finds_more_for_the_same_work():
    join, tables = JOINS["every row"]()
    with one_thread():
        runs = [select(join, tables, LOAD, own, throttle=Forced([0.15])) for own in (RATE, TIME, DIRECTION)]
    rate, time, direction = (run.outcome.results for run in runs)
    assert time > 1.3 * rate
    assert direction > 1.1 * time
    # Rows of the first stream find most, so they get it all; without `direction` both get the same.
    assert runs[1].shares[-1][0] == pytest.approx(runs[1].shares[-1][1])
    assert runs[2].shares[-1][0] > 0.2 and runs[2].shares[-1][1] == 0


def test_the_estimate_knows_what_is_missed():
    join, tables = JOINS["every row"]()
    with one_thread():
        full = whole(join, tables, LOAD)
        steps = select(join, tables, LOAD, throttle=Forced([0.3])).outcome.steps
    missed = sum((step.completeness for step in steps[4:]), start=steps[3].completeness)
    true = sum(step.results for step in full.steps[3:])
    assert missed.delivered == sum(step.results for step in steps[3:])
    low, high = missed.interval
    assert low <= missed.delivered / true <= high
    assert high - low < 0.3
