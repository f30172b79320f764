"""Slices cover the time range once, and their reaches are exact to the microsecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkshed.planner.slices import MOST_SLICES, Run, Slices, runs

BOUNDS = st.one_of(st.none(), st.integers(0, 60))


@given(past=BOUNDS, future=BOUNDS, basic=st.integers(1, 80))
def test_every_partner_is_in_one_slice(past, future, basic):
    slices = Slices.of(past, future, basic)
    lags = np.arange(-(70 if future is None else future), (70 if past is None else past) + 1)
    places = slices.places(lags, np.zeros(len(lags), np.int64))
    assert places.min() >= 0 and places.max() < slices.count
    for place in range(slices.count):
        earlier, later = slices.reach(Run(place + slices.first, place + slices.first))
        inside = np.ones(len(lags), bool)
        if earlier is not None:
            inside &= lags <= earlier
        if later is not None:
            inside &= -lags <= later
        assert (inside == (places == place)).all()


@given(st.sets(st.integers(-9, 9)))
def test_runs_are_as_few_as_possible(numbers):
    found = runs(sorted(numbers))
    assert {n for run in found for n in range(run.first, run.last + 1)} == numbers
    assert all(second.first > first.last + 1 for first, second in zip(found, found[1:], strict=False))


def test_unbounded_sides_and_long_windows():
    assert Slices.of(None, None, 5).count == 2 * MOST_SLICES
    assert Slices.of(10, 0, 1000).count == 1
    assert Slices.of(-5, 20, 2).last < 0
    assert Slices.of(0, 0, 7).count == 1
