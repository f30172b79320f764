"""What routers are told: loads that differ, longer or shorter segments, another master."""

from __future__ import annotations

from typing import Any

import pytest

from sparkshed.experiments.joins import camera_join
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.diffusion.plan import aligned_plan, coordinated_plan
from sparkshed.planner.guide import ADAPT, Guide
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.streaming import Hosts, Report, StreamingPlan


def guide(kind: str = "atr", hosts: int = 2, static: tuple[bool, ...] = (False,) * 3) -> Guide:
    spec = camera_join(3).spec
    if kind == "atr":
        router = aligned_plan(spec.bounds, spec.basic, hosts)
    else:
        router = coordinated_plan(spec.basic, tuple((own,) for own in spec.orders))
    master = static.index(False)
    return Guide(StreamingPlan(spec, Hosts(hosts, master=master, router=router), None, False, static))


def report(host: int, joining: float, arrived: tuple[int, ...] = (0, 0, 0), rows: int = 10, **more) -> Report:
    streams = [{"arrived": float(count)} for count in arrived]
    return Report(
        host,
        0,
        1.0,
        streams,
        [0, 0, 0],
        1000 * joining,
        Completeness(),
        Tally.empty(3, 0),
        rows=rows,
        joining=joining,
        **more,
    )


def run(own: Guide, seconds: float, *reports: Report, start: float = 0.0) -> list[dict[str, Any]]:
    """A micro-batch each second; what was told."""
    found = [own.observe(reports, start + second) for second in range(round(seconds))]
    return [told for told in found if told is not None]


def test_even_hosts_are_left_alone() -> None:
    assert run(guide(), 12, report(0, 0.5, (9, 9, 9)), report(1, 0.5)) == []


def test_loads_are_told_where_they_differ() -> None:
    told = run(guide(), ADAPT + 1, report(0, 0.9, (9, 9, 9)), report(1, 0.3))
    assert [own["number"] for own in told] == [1]
    # 0.6 of it is work, 0.2 each are rows and bytes.
    assert told[0]["loads"] == pytest.approx([0.6 * 1.5 + 0.4, 0.6 * 0.5 + 0.4])


def test_rows_and_bytes_count_and_lanes_of_a_host_add_up() -> None:
    first = report(0, 0.5, (9, 9, 9), rows=30, routing={"bytes": [100, 100]})
    told = run(guide(), ADAPT + 1, first, report(1, 0.25, rows=10), report(3, 0.25, rows=0))
    assert told[0]["loads"] == pytest.approx([0.6 + 0.2 * 1.5 + 0.2, 0.6 + 0.2 * 0.5 + 0.2])


def test_nothing_is_told_while_nothing_comes() -> None:
    assert run(guide(), 30, report(0, 0.9), report(1, 0.1)) == []


def test_the_fastest_stream_becomes_the_master() -> None:
    own = guide(hosts=20)
    assert own.observe([report(0, 1.0, (9, 90, 9)), report(1, 1.0)], 0.0) is None
    told = run(own, ADAPT, report(0, 1.0, (9, 90, 9)), report(1, 1.0), start=1.0)
    assert told[0]["master"] == 1
    # It stays while no other one is clearly better.
    assert {own["master"] for own in run(own, 20, report(0, 1.0, (80, 90, 9)), start=10.0)} == {1}


def test_a_table_is_no_master() -> None:
    own = guide(hosts=20, static=(False, True, False))
    told = run(own, 12, report(0, 1.0, (9, 90, 10)))
    assert {own["master"] for own in told} <= {0, 2}


def test_segments_grow_while_that_helps_and_shrink_when_it_does_not() -> None:
    """The busiest host takes least time for a row where segments have 12 ticks."""
    own, lengths, length = guide(hosts=20), [], 1
    for second in range(4000):
        busy = length / 12 + 12 / length
        told = own.observe([report(0, busy, (100, 100, 100)), report(1, busy)], float(second))
        if told is not None:
            length = told["length"]
            lengths.append(length)
    assert lengths[0] < 12
    late = lengths[len(lengths) // 2 :]
    assert sum(7 <= length <= 20 for length in late) > 0.5 * len(late)
    assert all(2 <= length <= 70 for length in late)


def test_matches_are_told_to_where_partial_results_travel() -> None:
    own = guide("ctr")
    one = report(0, 0.9, (9, 9, 9), met=[[0, 1, 10, 5], [0, 2, 5, 20]])
    told = run(own, ADAPT + 1, one, report(1, 0.1, met=[[0, 1, 10, 0]]))
    assert told[0]["matches"] == [[1.0, 0.25, 4.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


def test_what_was_met_long_ago_counts_for_less() -> None:
    own = guide("ctr")
    run(own, 10 * ADAPT, report(0, 0.9, (9, 9, 9), met=[[0, 1, 10, 10]]), report(1, 0.1))
    told = run(own, 40 * ADAPT, report(0, 0.9, (9, 9, 9), met=[[0, 1, 10, 0]]), report(1, 0.1), start=99.0)
    assert told[0]["matches"][0][1] > 0.8
    assert told[-1]["matches"][0][1] < 0.05
    later = guide("ctr")
    later.resume(told[0])
    (again, *_) = run(later, ADAPT + 1, report(0, 0.9, (9, 9, 9)), report(1, 0.1))
    assert again["matches"][0][1] == pytest.approx(told[0]["matches"][0][1], rel=1e-2)


def test_a_master_that_the_router_could_not_take_is_told_again() -> None:
    own = guide(hosts=20)
    first = report(0, 1.0, (9, 90, 9), routing={"bytes": [0] * 20, "master": 0})
    told = run(own, 4 * ADAPT, first, *(report(host, 1.0) for host in range(1, 20)))
    assert [own["master"] for own in told] == [1, 1, 1]


def test_a_later_run_goes_on() -> None:
    own = guide()
    (told,) = run(own, ADAPT + 1, report(0, 0.9, (9, 9, 9)), report(1, 0.3))
    later = guide()
    later.resume(told | {"master": 2, "climber": {**told["climber"], "place": 5}})
    (again,) = run(later, ADAPT + 1, report(0, 0.9, (9, 9, 9)), report(1, 0.3))
    assert (again["number"], again["length"], again["master"]) == (2, 11, 2)
