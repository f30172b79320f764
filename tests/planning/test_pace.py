"""Budgets that are kept while an interval runs."""

import pytest

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.pace import CHEAP, DEAR, NOTHING, WHOLE, Governor, Pace
from sparkshed.planner.wire import configuration_from_json, configuration_to_json, tally_from_json

PACE = Pace((10.0, 30.0), 2000.0, 0.2, cheap=0.4, dear=1.2, whole=8.0)


def work_of(level: float, truth: float) -> float:
    """What a row costs at a level, over what it should: rows are as many times dearer as expected."""
    mix = PACE.mix(level)
    levels = {NOTHING: 0.0, CHEAP: PACE.cheap, DEAR: PACE.dear, WHOLE: PACE.whole}
    return truth * (mix.share * levels[mix.more] + (1 - mix.share) * levels[mix.less]) + PACE.taught


@pytest.mark.parametrize(
    ("truth", "near"),
    [
        (0.7, 0.05),
        (1.0, 0.001),
        (1.5, 0.05),
        pytest.param(0.3, 0.13, id="far"),
        pytest.param(3.0, 0.13, id="farther"),
    ],
)
def test_an_interval_takes_what_is_planned_whatever_rows_cost(truth, near):
    """Beyond what both settings cost, a tenth is left to the next intervals."""
    governor, spent, allowed = Governor(PACE, 0.8), 0.0, 0.0
    for step in range(200):
        stream = step % 2
        work = PACE.promised[stream] * work_of(governor.level, truth)
        governor.add(stream, 1, work)
        governor.follow()
        spent, allowed = spent + work, allowed + PACE.promised[stream]
    assert spent == pytest.approx(allowed, rel=near)


def test_rows_of_one_stream_alone_do_not_change_what_those_of_the_others_do():
    """All slices may be those of one direction: its rows cost more than their share, the others less."""
    governor = Governor(PACE, 0.8)
    for _ in range(20):
        governor.add(0, 10, 390.0)
        assert governor.level == 0.8
        governor.add(1, 10, 10.0)
        assert governor.follow() == pytest.approx(0.8)


def test_levels_are_mixed_from_the_settings_beside_them():
    for level in (0.0, 0.1, 0.4, 0.9, 1.2, 5.0, 8.0):
        assert work_of(level, 1.0) == pytest.approx(level + PACE.taught)
    assert PACE.mix(100.0).share == 1.0
    assert (PACE.mix(0.0).more, PACE.mix(0.0).less, PACE.mix(0.0).share) == (CHEAP, NOTHING, 0.0)


def test_settings_that_are_everything_leave_nothing_to_add():
    pace = Pace((10.0,), 100.0, 0.0, cheap=1.0, dear=1.0, whole=1.0)
    governor = Governor(pace, 1.0)
    governor.add(0, 5, 1.0)
    governor.follow()
    assert governor.level == 1.0 and pace.mix(governor.level).more == DEAR


def test_a_pace_travels_with_its_configuration_and_older_ones_have_none():
    configuration = Configuration(((1,), (0,)), 0.5, pace=PACE)
    data = configuration_to_json(configuration)
    assert configuration_from_json(data) == configuration
    del data["pace"]
    assert configuration_from_json(data).pace is None


def test_tallies_of_older_checkpoints_have_two_kinds_of_rows():
    direction = {"rows": 3, "learned": 1, "results": 0, "work": 5, "lags": [], "hops": []}
    read = tally_from_json({"directions": [{**direction, "harvested": [[2, 4], [1, 0]]}], "streams": []})
    assert read.directions[0].harvested.tolist() == [[2, 4], [1, 0], [0, 0]]
