"""Load diffusion: the union of what all hosts find is the join, and nothing is found twice."""

from __future__ import annotations

import json
from itertools import permutations
from math import log
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planning.diffusing import World, by_aligned_hosts, by_coordinated_hosts
from sparkshed.planner.diffusion.aligned import AlignedRouter
from sparkshed.planner.diffusion.climbing import Climber
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter
from sparkshed.planner.diffusion.cover import cover
from sparkshed.planner.diffusion.loads import Loads
from sparkshed.planner.diffusion.overhead import Flow, aligned, best_master, coordinated
from sparkshed.planner.diffusion.ticks import Ticks

many = settings(deadline=None, max_examples=2000, suppress_health_check=list(HealthCheck))


def hosts_of(rng: Random) -> int:
    return rng.randint(1, rng.choice([3, 8, 50]))


@many
@given(seed=st.integers(0, 1 << 40))
def test_aligned_hosts_find_every_result_once(seed: int) -> None:
    rng = Random(seed)
    world = World.random(rng, endless=rng.random() < 0.2)
    ticks = Ticks(rng.choice([1, 3, 10]), world.bounds)
    master = rng.randrange(len(world.bounds))
    router = AlignedRouter(ticks, hosts_of(rng), master, rng.choice([1, 2, 5]))
    assert by_aligned_hosts(world, ticks, router, rng) == world.joined(world.rows)


@many
@given(seed=st.integers(0, 1 << 40))
def test_coordinated_hosts_find_every_result_once(seed: int) -> None:
    rng = Random(seed)
    world = World.random(rng, endless=rng.random() < 0.2)
    ticks = Ticks(rng.choice([1, 3, 10]), world.bounds)
    m = len(world.bounds)
    orders = [
        rng.sample(list(permutations([k for k in range(m) if k != i])), rng.choice([1, 1, 2]) if m > 2 else 1)
        for i in range(m)
    ]
    router = CoordinatedRouter(ticks, hosts_of(rng), orders)
    assert by_coordinated_hosts(world, ticks, router, rng) == world.joined(world.rows)


WINDOW = Ticks(10, ((0, 40, 40), (40, 0, 40), (40, 40, 0)))


def test_segments_go_to_the_least_loaded_host() -> None:
    router = AlignedRouter(WINDOW, 3, 0, 2)
    assert [router.route(0, tick) for tick in range(6)] == [[(0, n)] for n in (0, 0, 1, 1, 2, 2)]
    router.measure([1.0, 0.1, 0.5], 6)
    # A tick counts for 1.6 / 6: two segments make host 1 as busy as host 2.
    assert [router.route(0, tick)[0][1] for tick in range(6, 14, 2)] == [1, 2, 1, 0]


def test_segments_that_are_still_to_come_are_not_forgotten() -> None:
    router = AlignedRouter(WINDOW, 3, 0, 1)
    for tick in range(20):
        router.route(1, tick)
        if tick % 2:
            # Nothing has come of the master, so there is nothing that loads could show.
            router.measure([0.0, 0.0, 0.0], 2)
    assert len(router.eras[0].hosts) == 28
    ahead = router.eras[0].hosts[-9:]
    assert [ahead.count(host) for host in range(3)] == [3, 3, 3]
    # Host 0 looks idle, but has as much to come as the others: it does not get all that follows.
    router.measure([0.0, 0.2, 0.2], 10)
    for tick in range(20, 29):
        router.route(1, tick)
    following = router.eras[0].hosts[-9:]
    assert 3 <= following.count(0) <= 7
    fresh = AlignedRouter(WINDOW, 3, 1, 1)
    fresh.recall(json.loads(json.dumps(router.notes())))
    fresh.measure([1.0, 1.0, 1.0], 5)
    router.measure([1.0, 1.0, 1.0], 5)
    assert fresh.loads.given == router.loads.given


def test_a_host_without_any_segment_gets_one() -> None:
    router = CoordinatedRouter(Ticks(10, ((0, 60), (60, 0))), 8, [[[1]], [[0]]])
    spread = [{"hosts": [[tick, tick] for tick in range(6)], "before": list(range(6))} for _ in range(2)]
    router.recall({**router.notes(), "places": spread})
    # The cover of the window takes six hosts, which is more than are added at the start.
    assert router.route([(0, 6)])[0, 6].keepers == (0, 1, 2, 3, 4, 5, 6)
    assert router.route([(1, 6)])[1, 6].keepers == (0, 1, 2, 3, 4, 5, 6, 7)


def test_slaves_follow_the_segments_that_they_can_meet() -> None:
    router = AlignedRouter(WINDOW, 8, 0, 2)
    for tick in range(16):
        router.route(0, tick)
    # Ticks 4 to 12 of the master, in segments 2 to 6.
    assert router.route(1, 8) == [(0, host) for host in range(2, 7)]
    assert router.size == 8
    router.forget(12)
    assert router.size == 5
    # Ticks 8 to 16: the last of them are in a new segment.
    assert router.route(2, 12) == [(0, host) for host in (0, 4, 5, 6, 7)]


def test_both_eras_get_what_they_need_and_no_more() -> None:
    router = AlignedRouter(WINDOW, 2, 0, 1)
    for tick in range(4):
        router.route(1, tick)
    assert router.switch(1)
    until = router.eras[0].until
    assert until == 8
    assert not router.switch(2)
    assert [lane for lane, _ in router.route(0, until - 1)] == [0]
    assert {lane for lane, _ in router.route(0, until)} == {1}
    assert {lane for lane, _ in router.route(1, until)} == {0, 1}
    assert {lane for lane, _ in router.route(1, until - 5)} == {0}
    assert {lane for lane, _ in router.route(2, until + 5)} == {1}
    router.forget(until + 2 * 5 + 1)
    assert [era.master for era in router.eras] == [1]
    assert router.switch(2)


def test_a_master_that_meets_everything_stays() -> None:
    router = AlignedRouter(Ticks(10, ((0, None), (40, 0))), 3, 0, 1)
    assert router.switch(1)
    router.route(0, 5)
    assert not router.switch(0)
    assert router.route(0, 5) == [(0, 0), (0, 1), (0, 2)]


def test_what_was_not_needed_counts_for_nothing() -> None:
    router = AlignedRouter(WINDOW, 2, 0, 3)
    router.route(0, 1_000_000)
    router.route(1, -1_000_000)
    # A segment of 3 ticks, and the ticks that the other row can meet.
    assert sum(router.loads.given) == 3 + 9
    assert router.size == 1 + 3 + 1


def least_cover(wanted: int, having: dict[int, int], loads: dict[int, float]) -> float:
    best = float("inf")
    hosts = list(having)
    for chosen in range(1 << len(hosts)):
        own = [host for place, host in enumerate(hosts) if chosen >> place & 1]
        union = 0
        for host in own:
            union |= having[host]
        if union & wanted == wanted:
            best = min(best, sum(loads[host] for host in own))
    return best


@settings(deadline=None, max_examples=300)
@given(
    having=st.dictionaries(st.integers(0, 7), st.integers(0, 255), min_size=1, max_size=8),
    data=st.data(),
)
def test_covers_are_complete_and_cheap(having: dict[int, int], data: st.DataObject) -> None:
    union = 0
    for own in having.values():
        union |= own
    wanted = data.draw(st.integers(0, 255)) & union
    loads = {host: data.draw(st.floats(0.01, 1)) for host in having}
    answers = cover(wanted, having, loads)
    together = 0
    for host, own in answers.items():
        assert own & ~having[host] == 0 and own & together == 0 and own
        together |= own
    assert together == wanted
    # The greedy cover is at most 1 + 1/2 + … + 1/n times as dear as the cheapest.
    harmonic = sum(1 / n for n in range(1, wanted.bit_count() + 1))
    assert sum(loads[host] for host in answers) <= harmonic * least_cover(wanted, having, loads) + 1e-9


def test_a_segment_that_nobody_has() -> None:
    with pytest.raises(ValueError, match="no host has"):
        cover(0b100, {0: 0b011}, {0: 1.0})


def test_ticks_that_are_far_apart_take_no_room() -> None:
    router = CoordinatedRouter(WINDOW, 4, [[[1, 2]], [[0, 2]], [[0, 1]]])
    backlog = [(stream, tick) for tick in range(10**9, 10**9 + 500) for stream in range(3)]
    paths = router.route([(1, 0), *backlog, (2, 10**15)])
    assert paths[1, 0].hops == paths[2, 10**15].hops == ()
    for own in router._places:
        assert max(bits.bit_length() for bits in own.having.values()) <= len(own.ticks) <= 501
    # Rows of a batch meet those of their own tick and of earlier ones; the later ones come to meet them.
    first, second = paths[0, 10**9 + 100].hops
    for hop in (first, second):
        runs = sorted(run for own in hop.answers.values() for run in own)
        assert [begin for begin, _ in runs] == [10**9 + 96, *(end + 1 for _, end in runs[:-1])]
        assert runs[-1][1] == 10**9 + 100
    router.forget(10**9)
    assert router.size == 3 * 500 + 1


def test_hosts_of_the_hop_before_are_used_again() -> None:
    router = CoordinatedRouter(WINDOW, 12, [[[1, 2]], [[0, 2]], [[0, 1]]])
    fresh, used = [0, 0], set()
    for tick in range(40):
        paths = router.route([(0, tick), (1, tick), (2, tick)])
        router.forget(tick - 1)
        for path in paths.values():
            used.update(path.keepers)
            if path.hops:
                one, two = path.hops
                first = set(one.hosts) | set(path.keepers)
                fresh[0] += bool(set(one.hosts) & set(two.hosts))
                fresh[1] += 1
                assert path.overhead == len(first) - 1 + len(set(two.hosts) - set(one.hosts))
                assert len(path.keepers) >= 4
    assert fresh[0] > 0.8 * fresh[1] > 80
    # All hosts are in use, although a window is on four of them at first.
    assert len(used) == 12
    assert router.size < 3 * 10


@pytest.mark.parametrize(("many", "first"), [(1, 2), (2, 1)])
def test_of_several_orders_the_one_with_the_least_overhead(many: int, first: int) -> None:
    router = CoordinatedRouter(WINDOW, 3, [[[1, 2], [2, 1]], [[0, 2]], [[0, 1]]])
    reach = ((0.0, 8.0, 8.0), (8.0, 0.0, 8.0), (8.0, 8.0, 0.0))
    matches = [[0.0] * 3 for _ in range(3)]
    matches[0][many] = 1.0
    router.flow = Flow((10.0, 10.0, 10.0), reach, tuple(map(tuple, matches)))
    places = [{"hosts": [[1, host]], "before": [1]} for host in (0, 1, 2)]
    router.recall({**router.notes(), "places": places})
    path = router.route([(0, 1)])[0, 1]
    # Nothing is sent on from the stream in which nothing matches.
    assert [hop.target for hop in path.hops][0] == first
    assert path.overhead == 1


def test_notes_are_plain() -> None:
    one = AlignedRouter(WINDOW, 3, 0, 2)
    two = CoordinatedRouter(WINDOW, 7, [[[1, 2]], [[0, 2]], [[0, 1]]])
    for tick in range(20):
        one.route(tick % 3, tick)
        two.route([(tick % 3, tick)])
        if tick == 10:
            one.switch(2)
    fresh = AlignedRouter(WINDOW, 3, 1, 1), CoordinatedRouter(WINDOW, 7, [[[1, 2]], [[0, 2]], [[0, 1]]])
    for known, own in zip((one, two), fresh, strict=True):
        own.recall(json.loads(json.dumps(known.notes())))
    for tick in range(15, 25):
        assert one.route(tick % 3, tick) == fresh[0].route(tick % 3, tick)
        assert two.route([(tick % 3, tick)]) == fresh[1].route([(tick % 3, tick)])


def test_loads_need_a_number_for_each_host() -> None:
    with pytest.raises(ValueError, match="2 hosts, and 3 loads"):
        Loads(2).measure([1, 2, 3], 1)


FLOW = Flow(
    (50.0, 20.0, 10.0),
    ((0.0, 30.0, 20.0), (30.0, 0.0, 25.0), (20.0, 25.0, 0.0)),
    ((0.0, 0.1, 0.2), (0.1, 0.0, 0.05), (0.2, 0.05, 0.0)),
)


def test_the_master_has_the_fewest_copies() -> None:
    overheads = [aligned(FLOW, master, 60.0, 50) for master in range(3)]
    assert overheads == [
        pytest.approx(30 / 60 * 20 + 20 / 60 * 10),
        pytest.approx(30 / 60 * 50 + 25 / 60 * 10),
        pytest.approx(20 / 60 * 50 + 25 / 60 * 20),
    ]
    assert best_master(FLOW, 60.0, 50) == 0
    # Short segments go to all hosts.
    assert aligned(FLOW, 0, 0.001, 5) == 4 * 30.0


def test_partial_results_are_overhead_of_coordinated_routing() -> None:
    orders = ((1, 2), (0, 2), (1, 0))
    first = coordinated(FLOW, orders, 1.0, 0.0)
    assert first == 0
    assert coordinated(FLOW, orders, 3.0, 0.0) == 2 * 80
    partials = 50 * 0.1 * 20 * 30 + 20 * 0.1 * 50 * 30 + 10 * 0.05 * 20 * 25
    assert coordinated(FLOW, orders, 1.0, 2.0) == pytest.approx(2 * partials)


@pytest.mark.parametrize("peak", [5, 40, 300, 10_000])
@pytest.mark.parametrize("start", [2, 1000])
def test_climbing_finds_the_peak(peak: int, start: int) -> None:
    climber = Climber(start, 1, 2000)
    seen = []
    for _ in range(60):
        seen.append(climber.length)
        climber.observe(1 / (climber.length / peak + peak / climber.length))
    best = min(peak, 2000)
    late = seen[25:]
    near = [length for length in late if best / 1.6 <= length <= best * 1.6]
    assert len(near) >= len(late) // 2
    assert all(best / 6 <= length <= best * 6 for length in late)


def test_climbing_is_not_led_astray_by_bursts() -> None:
    rng, climber, near = Random(3), Climber(5, 1, 200), []
    for trial in range(400):
        if trial >= 50:
            near.append(10 <= climber.length <= 60)
        climber.observe((0.5 + rng.random()) / (climber.length / 25 + 25 / climber.length))
    assert sum(near) > 0.7 * len(near)


def test_climbing_leaves_alone_what_is_clearly_worse() -> None:
    climber, seen = Climber(8, 1, 64), []
    for _ in range(60):
        seen.append(climber.length)
        climber.observe(1.0 if climber.length < 10 else 0.3)
    assert sum(length > 10 for length in seen) <= 8
    assert max(seen) <= 27


def test_climbing_tries_all_near_lengths_again_and_again() -> None:
    climber, seen = Climber(100, 1, 10_000), []
    for _ in range(400):
        seen.append(climber.length)
        climber.observe(1 - 0.01 * abs(log(climber.length / 100)))
    near = {climber._lengths[climber._lengths.index(100) + step] for step in range(-3, 4)}
    for part in (seen[100:250], seen[250:]):
        assert set(part) == near
        # All others together are tried once where the best length is eight times.
        assert len([length for length in part if length != 100]) <= len(part) / 8


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("after", [40, 400])
def test_climbing_follows_a_peak_that_jumps(step: int, after: int) -> None:
    climber = Climber(100, 1, 10_000)
    peak = climber.length * 1.5**step

    def seen(best: float) -> float:
        return 1 / (climber.length / best + best / climber.length)

    for _ in range(after):
        climber.observe(seen(100))
    needed = 0
    while not 0.8 < climber.length / peak < 1.25 or needed < 1:
        climber.observe(seen(peak))
        needed += 1
        # One step away hardly less is found, so it takes longer to be noticed.
        assert needed <= (60 if abs(step) == 1 else 40)
    late = []
    for _ in range(60):
        climber.observe(seen(peak))
        late.append(0.8 < climber.length / peak < 1.25)
    assert sum(late) > 40


def test_climbing_has_a_range() -> None:
    with pytest.raises(ValueError, match="between 1 and 2"):
        Climber(3, 1, 2)
    climber = Climber(1, 1, 2)
    assert {climber.observe(1.0) for _ in range(10)} == {1, 2}
    # Each length once, also where steps are shorter than 1.
    assert Climber(1, 1, 20)._lengths == [1, 2, 3, 5, 8, 11, 17, 20]
