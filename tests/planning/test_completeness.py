"""Shares and intervals, and what a configuration refuses."""

from __future__ import annotations

import pytest

from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration, farthest
from sparkshed.planner.shedding import FEWEST_ROWS, MOST_ROWS, STRETCHES, pilot_cuts
from sparkshed.planner.slices import Slices
from sparkshed.planner.statistics import StreamStatistics


def test_nothing_to_deliver_is_everything_delivered():
    assert Completeness().share == 1
    assert Completeness().interval == (1, 1)


def test_the_interval_holds_the_share_and_narrows_with_the_variance():
    wide, narrow = Completeness(100, 50, 900, 1), Completeness(100, 50, 9, 1)
    for found in (wide, narrow):
        assert found.share == pytest.approx(2 / 3)
        assert found.interval[0] < found.share < found.interval[1]
    assert wide.interval[0] < narrow.interval[0] and narrow.interval[1] < wide.interval[1]


def test_a_sample_that_shows_nothing_may_hide_something():
    low, high = Completeness(100, 0, 0, weight=10).interval
    assert (low, high) == (pytest.approx(100 / 130), 1)


def test_batches_add_up():
    total = Completeness(10, 5, 4, 2) + Completeness(20, 1, 1, 3)
    assert (total.delivered, total.missed, total.variance, total.weight) == (30, 6, 5, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"throttle": 0},
        {"throttle": 1.5},
        {"mix": -0.1},
        {"shred": 2},
        {"reserve": 0},
        {"keep": (1.0,)},
        {"dear": (None, None, None)},
    ],
    ids=str,
)
def test_a_configuration_checks_itself(wrong):
    with pytest.raises(ValueError, match="share|reserve"):
        Configuration(((1,), (0,)), **wrong)


def test_how_far_harvests_reach():
    slices = [[Slices.of(10, 10, 2)] * 3] * 3
    orders = ((1, 2), (0, 2), (0, 1))
    everything = tuple(range(-5, 5))
    assert farthest([((0, 1), (2,)), ((), ()), ((-1,), (0,))], orders, slices) == (0, 4, 6)
    assert farthest([((0,), everything), None, ((), ())], orders, slices) == (None, 2, None)


def test_a_pilot_looks_at_evenly_spaced_stretches():
    cuts = pilot_cuts(StreamStatistics(100_000, quantiles=tuple(range(0, 3300, 100))))
    assert len(cuts) == 2 * STRETCHES
    looked = sum(end - start for start, end in zip(cuts[::2], cuts[1::2], strict=True))
    assert looked / 3200 == pytest.approx(MOST_ROWS / 100_000, abs=0.005)
    assert pilot_cuts(StreamStatistics(FEWEST_ROWS, quantiles=(0, 10, 20))) == ()
    assert pilot_cuts(StreamStatistics(5000, quantiles=(7, 7))) == ()
    assert pilot_cuts(StreamStatistics(0)) == ()
