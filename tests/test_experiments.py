"""The virtual clock, the baseline with equal work, and input that is out of the ordinary."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from sparkshed.experiments.feeds import Feed
from sparkshed.experiments.harness import Forced, Load
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import phase_tables, tables_of
from sparkshed.experiments.runs import CLOSE, PAPER, compare, drop, exact, grub
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.harvest import CHOOSERS, METRICS
from sparkshed.workloads.cameras import Cameras, CameraStream, Phase, camera_table

CAMERAS = Cameras((0, 1.5, 3.5), (2, 2, 20))
RATE = 60.0
SECONDS = 20.0


def small_join(m=3, **changes):
    return camera_join(m, **{"window": 5, "basic": 0.5, **changes})


@pytest.fixture(scope="module")
def tables():
    return tables_of(CAMERAS, RATE, SECONDS, seed=3)


def load(**changes):
    return Load(**{"seconds": SECONDS, "warm_up": 10.0, "adapt": 2.5, "tick": 0.05, **changes})


@pytest.fixture(scope="module")
def full(tables):
    return exact(small_join(), tables, load())


@pytest.fixture(scope="module")
def capacity(full):
    """A fifth of what the exact join needs."""
    return full.work_rate / 5


@pytest.fixture(scope="module")
def loaded(tables, capacity):
    """GrubJoin with that capacity."""
    return grub(small_join(), tables, load(capacity=capacity), seed=5).outcome


def test_a_feed_loses_what_finds_no_room():
    table = camera_table(CameraStream(np.arange(10.0), np.zeros(10)))
    feed = Feed(table, size=3)
    start = feed.times[0]
    assert feed.arrive(start + 4, limited=True) == (5, 2)
    assert feed.held == 3 and feed.oldest == start
    assert feed.take(start + 1)["id"].to_pylist() == [0, 1]
    assert feed.arrive(start + 7, limited=True) == (3, 1)
    assert feed.take(start + 9)["id"].to_pylist() == [2, 5, 6]
    assert feed.oldest == math.inf and feed.take(start + 9) is None
    assert feed.arrive(start + 9, limited=False) == (2, 0)


def test_a_feed_without_rows_has_nothing_to_give():
    feed = Feed(camera_table(CameraStream(np.empty(0), np.empty(0))), size=3)
    assert feed.arrive(10.0, limited=True) == (0, 0)
    assert feed.take(10.0) is None and feed.oldest == math.inf


def test_runs_are_the_same_for_a_seed(tables, capacity, loaded):
    first, again = loaded, grub(small_join(), tables, load(capacity=capacity), seed=5).outcome
    assert first.results == again.results and first.work == again.work and first.lost == again.lost
    assert [step.throttle for step in first.steps] == [step.throttle for step in again.steps]
    assert [step.configuration for step in first.steps] == [step.configuration for step in again.steps]


def test_the_clock_keeps_to_its_capacity(loaded, capacity, full):
    outcome = loaded
    assert 0.5 * capacity < outcome.work_rate <= 1.02 * capacity
    assert all(step.busy <= 1 for step in outcome.steps)
    assert outcome.results < full.results
    # Everything that came was consumed or lost, but for what still waits.
    came, gone = (sum(getattr(step, name) for step in outcome.steps) for name in ("arrived", "consumed"))
    lost = sum(step.lost for step in outcome.steps)
    assert 0 <= came - gone - lost <= 3 * 10


def test_without_a_limit_nothing_is_lost(tables, full):
    outcome = grub(small_join(), tables, load(tick=0.25), throttle=Forced([1.0])).outcome
    assert outcome.lost == 0 and outcome.results == full.results
    assert outcome.work >= full.work


CHOSEN = {
    **{name: Policy(chooser=name) for name in CHOOSERS if name != "greedy"},
    **{metric: Policy(chooser="greedy", metric=metric) for metric in METRICS},
    "per_stream": Policy(per_stream=True),
    "paper": PAPER,
}
BUDGET = Load(seconds=50, warm_up=20, tick=0.25)
NONALIGNED = ((0, 3, 7, 4), (2, 2, 30, 10))
ALIGNED = ((0, 0, 0, 0), (2, 2, 30, 10))


@cache
def budget_tables(m, lags, rate, seed):
    tau, kappa = lags
    return tables_of(Cameras(tau[:m], kappa[:m]), rate, BUDGET.seconds, seed=seed)


@cache
def budget_whole(m, lags, rate, seed, indexed, orders):
    join = camera_join(m, window=10, basic=1, indexed=indexed)
    return exact(join, budget_tables(m, lags, rate, seed), BUDGET, orders)


def spent_and_found(policy, z, *, m=3, lags=NONALIGNED, rate=80.0, seed=0, indexed=False):
    """Work over the budget, and the share of results."""
    join = camera_join(m, window=10, basic=1, indexed=indexed)
    run = grub(join, budget_tables(m, lags, rate, seed), BUDGET, policy, throttle=Forced([z]), seed=seed + 1)
    whole = budget_whole(m, lags, rate, seed, indexed, run.orders)
    spent = run.outcome.statistics.work / (z * whole.statistics.work)
    return spent, run.outcome.results / whole.results


@pytest.mark.parametrize(
    ("policy", "z"), [*product(CHOSEN, [0.1, 0.3]), ("lagrange", 0.7), ("greedy_double", 0.7)]
)
def test_work_stays_within_the_budget(policy, z):
    spent, found = spent_and_found(CHOSEN[policy], z)
    # With little to spend, so few rows are shredded that the full work is not known any better.
    assert spent == pytest.approx(1, abs=0.05 if z > 0.1 else 0.1)
    assert z < found <= 1


@pytest.mark.parametrize(
    ("z", "changes"),
    [
        pytest.param(0.5, {"seed": 1}, id="another seed"),
        pytest.param(0.3, {"rate": 120.0, "seed": 2}, id="more rows"),
        pytest.param(0.3, {"lags": ALIGNED}, id="aligned"),
        pytest.param(0.3, {"m": 2, "lags": ALIGNED}, id="two streams"),
        pytest.param(0.3, {"m": 4, "rate": 40.0}, id="four streams"),
        pytest.param(0.3, {"indexed": True}, id="indexed"),
    ],
)
def test_work_stays_within_the_budget_of_other_joins(z, changes):
    spent, _ = spent_and_found(Policy(), z, **changes)
    assert spent == pytest.approx(1, abs=0.05)


def test_randomdrop_does_the_work_it_is_given(tables, full):
    orders = small_join().spec.orders
    dropped = drop(small_join(), tables, load(), full, full.work_rate / 4, orders)
    assert dropped.work_rate == pytest.approx(full.work_rate / 4, rel=CLOSE)
    assert 0 < dropped.results < full.results
    everything = drop(small_join(), tables, load(), full, 2 * full.work_rate, orders)
    assert everything.results == full.results


@pytest.mark.parametrize(("policy", "least"), [(Policy(), 1.5), (PAPER, 0.65)])
def test_grubjoin_gains_over_randomdrop_with_equal_work(policy, least, tables, capacity):
    compared = compare(small_join(), tables, load(capacity=capacity, buffer=30), policy)
    assert compared.dropped.work_rate >= (1 - CLOSE) * compared.grub.work_rate
    assert compared.gain >= least
    assert compared.grub.results <= compared.full.results


def rows_at(*times):
    return camera_table(CameraStream(np.array(times, dtype=float), np.zeros(len(times))))


STILL = Phase(8, RATE, CAMERAS)


@pytest.mark.parametrize(
    ("phases", "join"),
    [
        pytest.param([STILL, Phase(8, (RATE, 0.0, RATE), CAMERAS), STILL], {}, id="a stream goes silent"),
        pytest.param([Phase(8, 5.0, CAMERAS), Phase(1, 500.0, CAMERAS), STILL], {}, id="rate jumps by 100"),
        pytest.param([Phase(16, (RATE, 0.0, RATE), CAMERAS)], {}, id="a stream without any row"),
        pytest.param([STILL, STILL], {"eps": 0}, id="selectivity 0"),
        pytest.param([Phase(8, 15.0, CAMERAS)], {"eps": 1000, "window": 2}, id="selectivity 1"),
        pytest.param([STILL, STILL], {"basic": 30}, id="b larger than the window"),
    ],
)
def test_streams_out_of_the_ordinary(phases, join):
    streams = phase_tables(phases, seed=1)
    seconds = sum(phase.seconds for phase in phases)
    whole = exact(small_join(**join), streams, Load(seconds=seconds, warm_up=0))
    tight = Load(max(1.0, whole.work_rate / 4), seconds=seconds, warm_up=0, adapt=2.0)
    outcome = grub(small_join(**join), streams, tight).outcome
    assert outcome.results <= whole.results
    assert (outcome.results > 0) == (whole.results > 0)
    assert outcome.steps[-1].configuration is not None
    assert all(0 < step.throttle <= 1 for step in outcome.steps)


@pytest.mark.parametrize("m", [2, 6])
def test_few_and_many_streams(m):
    cameras = Cameras(tuple(0.3 * i for i in range(m)), (2,) * m)
    streams = tables_of(cameras, 15.0, 15.0, seed=2)
    join = camera_join(m, window=2, basic=0.5, eps=4)
    whole = exact(join, streams, Load(seconds=15, warm_up=5))
    outcome = grub(join, streams, Load(whole.work_rate / 3, seconds=15, warm_up=5, adapt=2.0)).outcome
    assert 0 < outcome.results <= whole.results


def test_one_row_and_rows_at_one_instant():
    empty = rows_at()
    alone = grub(small_join(), [rows_at(1.0), empty, empty], Load(100.0, seconds=10, warm_up=0)).outcome
    assert (alone.results, alone.work, alone.lost) == (0, 0, 0)
    one_each = grub(small_join(), [rows_at(1.0)] * 3, Load(100.0, seconds=10, warm_up=0)).outcome
    assert one_each.results == 1
    at_once = [rows_at(*[1.0] * 20)] * 3
    together = grub(small_join(), at_once, Load(1e9, seconds=10, warm_up=0, buffer=50)).outcome
    assert together.results == 20**3
    nothing = grub(small_join(), [empty] * 3, Load(100.0, seconds=10, warm_up=0)).outcome
    assert (nothing.results, nothing.arrived) == (0, 0)


def test_dearer_comparisons_leave_less_for_results(tables, loaded, capacity):
    dear = grub(small_join(), tables, load(capacity=capacity, comparison=4.0)).outcome
    assert dear.results < loaded.results
    assert dear.work_rate <= 1.02 * capacity


def test_decisions_cost_work(tables, loaded, capacity):
    fine = grub(small_join(basic=0.1), tables, load(capacity=capacity)).outcome.steps
    assert max(step.effort for step in fine) > max(step.effort for step in loaded.steps) > 0


def test_forced_shares_follow_each_other():
    forced = Forced([0.5, 0.25])
    assert [forced.update(1, 1) for _ in range(3)] == [0.5, 0.25, 0.25]
