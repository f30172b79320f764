"""Throttles in simulated joins."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import sqrt
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkshed.planner.throttle import BatchThrottle, Throttle


def test_the_rule_of_the_paper():
    throttle = Throttle(boost=1.2)
    assert throttle.z == 1.0
    assert throttle.update(consumed=100, arrived=200) == 0.5
    assert throttle.beta == 0.5
    assert throttle.update(consumed=100, arrived=100) == pytest.approx(0.6)
    assert throttle.update(consumed=300, arrived=100) == pytest.approx(0.72)
    assert throttle.beta == 3.0
    assert throttle.update(consumed=0, arrived=0) == pytest.approx(0.864)
    assert throttle.beta == 1.0
    assert throttle.update(consumed=1, arrived=1) == 1.0


def test_z_never_reaches_zero_and_comes_back():
    throttle = Throttle()
    for _ in range(5):
        throttle.update(consumed=0, arrived=100)
    assert throttle.z == throttle.floor
    for _ in range(60):
        throttle.update(consumed=100, arrived=100)
    assert throttle.z == 1.0


@pytest.mark.parametrize("load", [1.5, 4.0, 20.0])
def test_z_settles_around_what_the_machine_can_do(load):
    throttle = Throttle()
    history = []
    for _ in range(60):
        history.append(throttle.z)
        throttle.update(consumed=min(1.0, 1 / (load * throttle.z)), arrived=1.0)
    assert mean(history[10:]) == pytest.approx(1 / load, rel=0.15)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=50))
def test_z_stays_a_share(updates):
    throttle = Throttle()
    for consumed, arrived in updates:
        assert 0 < throttle.update(consumed, arrived) <= 1


@dataclass
class Batches:
    """Micro-batches that follow each other: each takes what arrived during the one before it.

    A batch takes `fixed` seconds, `row` seconds per row and `unit` seconds per work unit. A row costs as many
    units as there are rows in 20 seconds, so the work grows with the square of the rate.
    """

    throttle: BatchThrottle
    fixed: float = 0.45
    row: float = 0.0
    unit: float = 1e-4
    base: float = 15.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        self.covered = self.throttle.interval
        self.draw = random.Random(5)

    def run(self, rate: float, count: int) -> list[float]:
        """z after each of so many batches, at so many times the usual rate."""
        history = []
        for _ in range(count):
            arriving = self.base * rate
            rows = arriving * self.covered
            full = rows * arriving * 20
            work = self.throttle.z * full
            busy = self.fixed + self.row * rows + self.unit * work
            duration = busy * self.draw.lognormvariate(0, self.noise)
            joining = self.unit * work * duration / busy
            history.append(self.throttle.update(work, duration, rows, arriving, full, joining))
            self.covered = max(self.throttle.interval, duration)
        return history

    def target(self, rate: float, span: float) -> float:
        """The largest z at which batches over so many seconds keep their headroom."""
        needed = self.unit * (self.base * rate) ** 2 * 20
        return min(1.0, (self.throttle.headroom - self.fixed / span) / needed)


def test_z_follows_jumps_of_the_rate_within_a_few_updates():
    throttle = BatchThrottle(interval=1.5)
    throttle.update(work=0, duration=0.45, rows=0, arriving=0, full_work=0, joining=0)
    batches = Batches(throttle)
    assert batches.run(1, 5) == [1.0] * 5
    for rate in (5, 10):
        # A load that grows is expected to grow on, and what waits must be joined, so z is too small at first.
        first = batches.run(rate, 8)
        assert 0.1 * batches.target(rate, 1.5) < first[0] < batches.target(rate, 1.5)
        assert first[-1] == pytest.approx(batches.target(rate, 1.5), rel=0.02)
        assert batches.run(rate, 8) == pytest.approx([batches.target(rate, 1.5)] * 8, rel=0.02)
        assert throttle.beta >= 1.0
        before = throttle.z
        after = batches.run(1, 7)
        # It opens by the boost, then by half of the way, in the logarithm, and near the end by the boost.
        assert after[0] == pytest.approx(1.2 * before)
        assert after[1] == pytest.approx(sqrt(after[0] * batches.target(1, 1.5)), rel=0.3)
        assert after == sorted(after)
        assert after[-1] > 0.7
        assert batches.run(1, 8)[-1] == 1.0


def test_the_cost_of_rows_is_not_taken_for_that_of_work():
    """Rows alone take 60 % of the time, and batches vary."""
    for seed in range(6):
        own = Batches(BatchThrottle(interval=1.0), 0.4, 0.6 / 22_500, 1e-7, 22_500, noise=0.2)
        own.draw = random.Random(seed)
        own.run(1, 30)
        assert mean(own.run(1, 100)) * own.unit * own.base**2 * 20 > 0.1
        assert own.covered < 8


@pytest.mark.parametrize(("rows", "fixed"), [(0.07, 0.45), (0.17, 0.45), (0.35, 0.45), (0.2, 0.8)])
def test_batches_settle(rows, fixed):
    """Batches of the last quarter of a run take as long as those in the middle, noise of 10 % or not."""
    for seed in range(12):
        own = Batches(BatchThrottle(interval=1.0), fixed, rows / 22_500, 1e-7, 22_500, noise=0.1)
        own.draw = random.Random(seed)
        own.throttle.z = 0.3 / (own.unit * own.base**2 * 20)
        durations = []
        for _ in range(100):
            own.run(1, 1)
            durations.append(own.covered)
        assert median(durations[75:]) == pytest.approx(median(durations[25:75]), rel=0.25)


def test_batches_do_not_grow_for_ever_where_rows_take_most_of_the_time():
    own = Batches(BatchThrottle(interval=1.0), 0.4, 0.6 / 22_500, 1e-7, base=22_500)
    own.run(1, 200)
    assert own.throttle.span <= 4 and own.covered < 6


def test_what_is_fixed_is_measured():
    throttle = BatchThrottle(interval=1.0)
    batches = Batches(throttle)
    batches.run(1, 3)
    assert throttle.fixed == pytest.approx(0.45)
    assert throttle.unit == pytest.approx(1e-4)


@pytest.mark.parametrize("empty_first", [True, False])
@pytest.mark.parametrize("rate", [1, 5, 10])
def test_batches_become_longer_when_the_fixed_cost_alone_exceeds_the_interval(rate, empty_first):
    throttle = BatchThrottle(interval=0.2)
    if empty_first:
        throttle.update(work=0, duration=0.45, rows=0, arriving=0, full_work=0, joining=0)
    batches = Batches(throttle)
    span = 0.45 / throttle.fixed_share
    target = batches.target(rate, span)
    history = batches.run(rate, 60)
    assert min(history) >= target * (0.5 if empty_first else 0.2)
    assert history[-1] == pytest.approx(target, rel=0.02)
    assert 0.45 < batches.covered < span
    assert throttle.span == pytest.approx(span, rel=0.02)


@pytest.mark.parametrize("interval", [0.3, 1.0])
@pytest.mark.parametrize("rate", [2, 5, 10])
def test_noise_is_ridden_out(rate, interval):
    batches = Batches(BatchThrottle(interval=interval), noise=0.1)
    history = batches.run(rate, 120)[20:]
    target = batches.target(rate, max(interval, 0.45 / batches.throttle.fixed_share))
    assert mean(history) == pytest.approx(target, rel=0.25)
    assert min(history) > 0.5 * target
    assert max(history) < 2 * target


def test_a_machine_that_becomes_slower_is_noticed_at_once():
    throttle = BatchThrottle(interval=1.0)
    batches = Batches(throttle)
    batches.run(5, 20)
    batches.unit *= 4
    before, target = throttle.z, batches.target(5, 1.0)
    assert batches.run(5, 1)[-1] < before / 3
    assert all(0.4 < z / target < 1.02 for z in batches.run(5, 6))
    assert batches.run(5, 1)[-1] == pytest.approx(target, rel=0.02)
    assert throttle.fixed == pytest.approx(0.45, rel=0.02)


def test_an_accident_is_forgotten_and_many_of_them_are_none():
    throttle = BatchThrottle(interval=1.0)
    batches = Batches(throttle)
    batches.run(5, 20)
    known = (throttle.fixed, throttle.unit)
    before = throttle.z

    def stumble():
        work = before * 112_500
        return throttle.update(work, 0.45 + 1.8e-4 * work, 75, 75, 112_500, 1.8e-4 * work)

    assert stumble() > 0.8 * before
    assert (throttle.fixed, throttle.unit) == pytest.approx(known)
    for _ in range(5):
        stumble()
    assert throttle.fixed > 1.2 * known[0]
    assert throttle.z < 0.9 * before


def test_only_a_batch_far_longer_than_planned_is_late():
    for duration, late in ((0.8, False), (1.5, False), (2.5, True)):
        throttle = BatchThrottle(interval=1.0)
        throttle.update(work=10, duration=duration, rows=60, arriving=100, full_work=10, joining=duration)
        assert throttle.is_late is late


def test_a_batch_that_has_a_file_more_is_no_higher_load():
    """Input comes in files, so of batches that last as long one has more of it than another."""
    throttle = BatchThrottle(interval=1.0)
    settled = []
    for files in [2, 2, 2, 2, *[3, 1] * 20]:
        full = 100_000.0 * files
        work = throttle.z * full
        throttle.update(work, 0.3 + 1e-5 * work, 10 * files, 10 * files, full, 1e-5 * work)
        settled.append(throttle.z)
    assert min(settled[10:]) > 0.9 * max(settled[10:])


def test_what_waits_becomes_less():
    throttle = BatchThrottle(interval=1.0)
    throttle.update(work=0, duration=0.1, rows=0, arriving=0, full_work=0, joining=0)
    batches = Batches(throttle, fixed=0.1)
    batches.run(1, 3)
    assert batches.run(20, 1) and batches.covered > 10, "one long batch"
    waiting = []
    for _ in range(6):
        batches.run(20, 1)
        waiting.append(batches.covered)
    assert waiting[2] < 2
    assert waiting[-1] == 1.0


def test_quiet_times_open_the_throttle():
    throttle = BatchThrottle()
    throttle.update(work=100, duration=10, rows=10, arriving=10, full_work=100, joining=10)
    before = throttle.z
    assert before < 0.2
    assert throttle.update(work=0, duration=0.1, rows=0, arriving=0, full_work=0, joining=0) == pytest.approx(
        1.2 * before
    )
    assert throttle.beta == 1.0


measured = st.one_of(st.just(0.0), st.floats(1e-6, 1e9))


@given(st.lists(st.tuples(*[measured] * 6), max_size=30))
def test_a_batch_throttle_stays_a_share(updates):
    throttle = BatchThrottle()
    for update in updates:
        assert throttle.floor <= throttle.update(*update) <= 1.0
        assert throttle.fixed >= 0
        assert throttle.unit >= 0


def test_settings_and_measurements_are_checked():
    with pytest.raises(ValueError, match="boost must be more than 1, found 1.0"):
        Throttle(boost=1.0)
    with pytest.raises(ValueError, match="floor must be more than 0"):
        BatchThrottle(floor=0.0)
    with pytest.raises(ValueError, match="0 < fixed_share < headroom <= 1"):
        BatchThrottle(fixed_share=0.95)
    with pytest.raises(ValueError, match="arrived must be finite and not negative, found -1"):
        Throttle().update(1, -1)
    with pytest.raises(ValueError, match="duration must be finite"):
        BatchThrottle().update(1, float("nan"), 1, 1, 1, 1)


def test_a_busy_join_is_not_boosted():
    throttle = Throttle()
    throttle.update(consumed=20, arrived=100)
    before = throttle.z
    assert throttle.update(consumed=100, arrived=100, busy=throttle.headroom) <= before
    assert Throttle().update(consumed=100, arrived=100, busy=0.2) == 1.0


def test_a_load_that_grows_is_met_before_it_is_there():
    steady, growing = Throttle(), Throttle()
    for busy, more in ((0.85, 0.3), (0.85, 0.6), (0.85, 0.85)):
        steady.update(consumed=100, arrived=100, busy=busy)
        growing.update(consumed=100, arrived=100, busy=more)
    assert steady.z == 1.0
    assert growing.z < 1.0


def test_lost_rows_count_for_more_when_the_cpu_is_measured():
    plain, measured = Throttle(), Throttle()
    assert measured.update(consumed=50, arrived=100, busy=1.0) < plain.update(consumed=50, arrived=100) == 0.5


def test_measured_throttle_settles():
    """A CPU whose load is in proportion to z: it ends near full, and nothing is lost."""
    throttle, demand = Throttle(), 5.0
    lost = 0.0
    for turn in range(40):
        wanted = demand * throttle.z
        lost += max(0.0, 1 - 1 / wanted) if turn >= 20 else 0.0
        throttle.update(consumed=100 * min(1.0, 1 / wanted), arrived=100, busy=min(1.0, wanted))
    assert lost == 0
    assert 0.9 <= demand * throttle.z <= 1
