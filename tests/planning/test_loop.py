"""The control loop of streaming joins, with real hosts on a virtual clock."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from sparkshed.experiments import bursts
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import tables_of
from sparkshed.experiments.result import Settings
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.loop import ControlLoop, Timing
from sparkshed.planner.streaming import Decision, Report
from sparkshed.planner.wire import (
    configuration_from_json,
    configuration_to_json,
    tally_from_json,
    tally_to_json,
)
from sparkshed.workloads.cameras import nonaligned


def test_z_follows_a_burst_and_its_end():
    result = bursts.burst(Settings(quick=True))
    assert result.headline["steps_to_shed_x5"] <= 2
    assert result.headline["settled_seconds_x5"] < bursts.TRIGGER
    assert result.headline["steps_to_recover_2"] <= 2
    before = [row for row in result.rows if row["at"] <= 40]
    assert all(row["z"] == row["completeness"] == 1 for row in before)


def reports_of(plan, seconds=12, rate=60.0):
    """Reports of a host that joins everything."""
    taken = []

    class Watched(ControlLoop):
        def observe(self, reports, timing):
            taken.append((reports, timing))

    original, bursts.ControlLoop = bursts.ControlLoop, Watched
    try:
        for _ in bursts.micro_batches(plan, tables_of(nonaligned(3), rate, seconds, 3), f"loop-{seconds}"):
            pass
    finally:
        bursts.ControlLoop = original
    return taken


@pytest.fixture(scope="module")
def taken():
    return reports_of(bursts.plan_of(camera_join(3), follows=False, budget=0.5))


def test_decisions_come_at_the_adaptation_interval(taken):
    plan = bursts.plan_of(camera_join(3), follows=False, budget=0.5)
    loop = ControlLoop(plan)
    decided = [timing.ended for reports, timing in taken if loop.observe(reports, timing) is not None]
    assert len(decided) == 2
    assert np.diff(decided).min() >= 5


def test_what_does_not_change_is_not_decided_again(taken):
    loop = ControlLoop(bursts.plan_of(camera_join(3), follows=False))
    assert not [1 for reports, timing in taken if loop.observe(reports, timing) is not None]
    assert loop.z == 1


@pytest.mark.parametrize(("rate", "told"), [(1.05, False), (10.0, True), (0.1, True)])
def test_hosts_hear_of_rows_that_may_cost_something_else(taken, rate, told, monkeypatch):
    """At ten times the rate the same slices have ten times the rows."""
    loop = ControlLoop(bursts.plan_of(camera_join(3), follows=False, budget=0.5))
    decisions = [loop.observe(reports, timing) for reports, timing in taken]
    last = [own for own in decisions if own is not None][-1].configuration
    promised = tuple(rate * own for own in last.pace.promised)
    changed = replace(last, pace=replace(last.pace, promised=promised))
    monkeypatch.setattr(loop.adapter, "adapt", lambda *_, **__: changed)
    reports, timing = taken[-1]
    decision = loop.observe(reports, replace(timing, ended=timing.ended + 10))
    assert (decision is not None) is told


def test_batches_without_rows_decide_nothing(taken):
    plan = bursts.plan_of(camera_join(3), follows=False, budget=0.5)
    loop = ControlLoop(plan)
    (first, *_), _ = taken[0]
    silent = Report.from_json(first.to_json())
    for direction in silent.tally.directions:
        direction.rows = 0.0
    assert all(loop.observe([silent], Timing(at, 0.3, 1.0)) is None for at in range(0, 60, 10))


def test_a_later_run_goes_on_from_what_was_remembered(taken):
    plan = bursts.plan_of(camera_join(3), follows=False, budget=0.5)
    loop = ControlLoop(plan)
    decision = next(found for reports, timing in taken if (found := loop.observe(reports, timing)))
    later = ControlLoop(plan)
    later.resume(decision.version, decision.to_json(), loop.remember(), fully=False)
    assert later.version == decision.version
    assert later.adapter.configuration == decision.configuration
    for own, other in zip(later.adapter.learned.directions, loop.adapter.learned.directions, strict=True):
        assert own.rows == pytest.approx(other.rows)
        assert own.hops.keys() == other.hops.keys()


def overloaded(taken):
    """A loop that follows the load, after batches that took four times as long as their input."""
    loop = ControlLoop(bursts.plan_of(camera_join(3)))
    decisions = []
    for place, (reports, timing) in enumerate(taken):
        told = decisions[-1].configuration.throttle if decisions else 1.0
        own = replace(reports[0], version=loop.version, throttle=told, joining=3.7 * timing.lasted)
        slow = Timing(timing.ended + 3 * place, 4 * timing.lasted, timing.lasted)
        found = loop.observe([own], slow)
        if found is not None:
            decisions.append(found)
    return loop, decisions


def test_decisions_say_what_there_is_time_for(taken):
    loop, decisions = overloaded(taken[:6])
    last = decisions[-1]
    throttle = loop.throttle
    assert last.most == pytest.approx(throttle.allowed / (throttle.unit * loop._arriving))
    assert Decision.from_json(last.to_json()).most == last.most
    assert last.configuration.throttle < 0.5


def test_hosts_that_shed_more_than_they_were_told_are_heard_at_once(taken):
    loop, decisions = overloaded(taken[:6])
    reports, timing = taken[6]
    told = decisions[-1].configuration.throttle
    for share, heard in ((1.0, False), (0.5, True)):
        own = ControlLoop(bursts.plan_of(camera_join(3)))
        own.__dict__.update(loop.__dict__)
        own.throttle = deepcopy(loop.throttle)
        effort = reports[0].effort * told
        joining = loop.throttle.unit * effort
        report = replace(
            reports[0], version=loop.version, throttle=share * told, effort=effort, joining=joining
        )
        short = Timing(loop._decided + 1.0, 0.5 * timing.lasted, timing.lasted)
        own._interval = None
        assert (own.observe([report], short) is not None) == heard


def test_nothing_is_decided_before_it_is_known_what_there_is_time_for(taken):
    loop = ControlLoop(bursts.plan_of(camera_join(3)))
    reports, _ = taken[3]
    shed = replace(reports[0], version=0, throttle=0.01, joining=2.5)
    assert loop.observe([shed], Timing(5.0, 3.0, 0.0)) is None
    assert loop.observe([shed], Timing(10.0, 3.0, 1.0)) is not None


@pytest.mark.parametrize("remembered", [False, True])
@pytest.mark.parametrize("fully", [False, True])
def test_a_run_that_goes_on_hears_hosts_that_are_behind(taken, fully, remembered):
    loop, decisions = overloaded(taken[:6])
    later = ControlLoop(bursts.plan_of(camera_join(3)))
    memory = loop.remember() if remembered else None
    later.resume(decisions[-1].version, decisions[-1].to_json(), memory, fully=fully)
    assert later.version == decisions[-1].version + fully
    reports, timing = taken[6]
    told = 1.0 if fully else decisions[-1].configuration.throttle
    behind = replace(reports[0], version=later.version, throttle=told, joining=3.7 * timing.lasted)
    found = later.observe([behind], Timing(timing.ended, 4 * timing.lasted, timing.lasted))
    assert found is not None and found.configuration.throttle < 0.5


def test_a_run_that_does_everything_begins_with_that(taken):
    loop = ControlLoop(bursts.plan_of(camera_join(3)))
    decision = loop.do_everything()
    assert decision.configuration.is_exact and decision.most is None
    for reports, timing in taken:
        own = replace(reports[0], version=loop.version, throttle=1.0)
        found = loop.observe([own], Timing(timing.ended, timing.duration, 0.0))
        assert found is None or found.configuration.is_exact
    assert loop.z == 1


def test_what_travels_arrives(taken):
    (report, *_), _ = taken[-1]
    again = Report.from_json(report.to_json())
    assert again.completeness == report.completeness
    assert again.streams == report.streams
    tally = tally_from_json(tally_to_json(report.tally))
    for own, other in zip(tally.directions, report.tally.directions, strict=True):
        for key, hop in other.hops.items():
            np.testing.assert_allclose(own.hops[key].touched, hop.touched, rtol=1e-5)
    configuration = Configuration(
        ((1, 2), (0, 2), (0, 1)),
        0.3,
        dear=(((1,), (2, 3)), None, ((), ())),
        mix=0.4,
        sifts=(True, False, False),
    )
    assert configuration_from_json(configuration_to_json(configuration)) == configuration
    older = configuration_to_json(configuration)
    del older["sifts"], older["tries"]
    assert configuration_from_json(older) == replace(configuration, sifts=())
    known = replace(report.tally.directions[0], sifted=3.0)
    written = tally_to_json(Tally([known], report.tally.streams))
    assert tally_from_json(written).directions[0].sifted == 3
    del written["directions"][0]["sifted"]
    assert tally_from_json(written).directions[0].sifted == 0
    assert Decision.from_json(Decision(3, configuration, {"z": 0.3}).to_json()).configuration == configuration


def test_hosts_that_shed_unasked_are_told_what_to_do_at_once(taken):
    plan = bursts.plan_of(camera_join(3))
    (first, *_), _ = taken[0]
    report = replace(first, version=0, throttle=0.1, joining=0.1)
    loop = ControlLoop(plan)
    decision = loop.observe([report], Timing(1.0, 0.4, 1.0))
    assert decision is not None
    assert loop.observe([replace(first, version=0, throttle=1.0)], Timing(2.0, 0.4, 1.0)) is None
