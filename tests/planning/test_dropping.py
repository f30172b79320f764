"""RandomDrop that follows the load: windows remember what was kept before."""

from __future__ import annotations

import pytest

from planning.test_adaptation import camera_tally
from sparkshed.experiments.joins import camera_join
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dropping import DropAdapter
from sparkshed.planner.harvest.tally import Tally


def adapter(*, follows: bool) -> DropAdapter:
    join = camera_join(3)
    everything = Configuration(join.spec.orders, shred=0.1)
    return DropAdapter(everything, join.spec.slices, join.graph, Policy(fixed=True, follows=follows))


def near_work(own: DropAdapter, tally: Tally, keep: tuple[float, ...]) -> float:
    """Work of the same rows with these shares, if each that is kept costs what it did."""
    former = own.configuration.keep
    return sum(
        direction.work * new / old for direction, new, old in zip(tally.directions, keep, former, strict=True)
    )


def test_the_next_interval_fits_although_windows_are_full():
    own, tally = adapter(follows=True), camera_tally()
    before = near_work(own, tally, (1.0, 1.0, 1.0))
    found = own.adapt(tally.copy(), 0.1)
    own.configuration = Configuration(found.orders)
    assert near_work(own, tally, found.keep) <= 0.1 * before * (1 + 1e-9)
    assert found.throttle == pytest.approx(near_work(own, tally, found.keep) / before)
    # A share that is promised is one of the long run: in two hops the work falls faster than what is kept.
    promised = adapter(follows=False).adapt(tally.copy(), 0.1)
    assert promised.throttle == 0.1
    assert near_work(own, tally, promised.keep) > 0.15 * before
