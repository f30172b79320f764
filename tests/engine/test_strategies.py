"""Strategies: never a wrong or doubled row, harvests are exact, and what is missed is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.build import World, collect, table
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.adaptive import Adaptive
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.randomdrop import RandomDrop
from sparkshed.experiments.joins import SECOND, camera_join
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration, farthest
from sparkshed.planner.pace import Pace
from sparkshed.planner.slices import Span
from sparkshed.workloads.cameras import camera_streams, camera_table


def batches(rng: Random, world: World, count: int) -> list[dict[int, pa.Table]]:
    """The rows of a random join in random micro-batches."""
    cuts: list[dict[int, list]] = [{} for _ in range(count)]
    for stream, rows in enumerate(world.rows):
        for row in rows:
            cuts[rng.randrange(count)].setdefault(stream, []).append(row)
    return [{s: table(rows, world.streams[s]) for s, rows in cut.items()} for cut in cuts]


def random_configuration(rng: Random, spec, *, drop: bool) -> Configuration:
    def harvest(origin: int):
        if rng.random() < 0.2:
            return None
        return tuple(
            tuple(k for k in range(own.first, own.last + 1) if rng.random() < 0.6)
            for own in (spec.slices[origin][target] for target in spec.orders[origin])
        )

    def part(origin: int, *harvests):
        """A part of a slice that no harvest has."""
        own = spec.slices[origin][spec.orders[origin][0]]
        free = [
            k
            for k in range(own.first, own.last + 1)
            if all(h is not None and k not in h[0] for h in harvests)
        ]
        span = own.span(rng.choice(free)) if free else None
        if span is None:
            return None
        start = rng.randint(span.start, span.stop)
        return Span(start, rng.randint(start, span.stop))

    streams = range(len(spec.streams))
    dear, cheap = (() if drop else tuple(map(harvest, streams)) for _ in range(2))
    return Configuration(
        spec.orders,
        throttle=rng.choice([0.05, 0.3, 0.9, 1.0]),
        dear=dear,
        cheap=cheap,
        partly=() if drop else tuple(map(part, streams, dear, cheap)),
        mix=rng.random(),
        shred=rng.choice([0.0, 0.1, 0.7, 1.0]),
        keep=tuple(rng.choice([0.1, 0.6, 1.0]) for _ in streams) if drop else (),
        sifts=tuple(rng.random() < 0.5 for _ in streams),
    )


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.sampled_from([GrubJoin, RandomDrop, Adaptive]), st.integers(2, 4))
def test_shed_output_is_part_of_the_exact_answer(seed, kind, m):
    rng = Random(seed)
    world = World(rng, 2 if kind is Adaptive else m, 12)
    spec = world.spec(chunk=rng.choice([1, 7, 1000]), basic=rng.choice([1, 3, 50]))
    cut = batches(rng, world, 3)
    exact = JoinOperator(spec)
    strategy = kind(
        random_configuration(rng, spec, drop=kind is RandomDrop), np.random.default_rng(seed), per_stream=True
    )
    shed = JoinOperator(spec, strategy, seed)
    whole: Counter = Counter()
    found: Counter = Counter()
    for batch in cut:
        whole += collect(exact, batch, spec.chunk)
        found += collect(shed, batch, spec.chunk)
        strategy.configure(random_configuration(rng, spec, drop=kind is RandomDrop))
    assert found <= whole
    assert strategy.completeness.delivered == sum(found.values())
    low, high = strategy.completeness.interval
    assert 0 <= low <= strategy.completeness.share <= high <= 1


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.sampled_from([GrubJoin, RandomDrop, Adaptive]))
def test_with_everything_allowed_the_answer_is_exact(seed, kind):
    rng = Random(seed)
    world = World(rng, 2 if kind is Adaptive else 3, 15)
    spec = world.spec(chunk=50, basic=3)
    cut = batches(rng, world, 3)
    configuration = Configuration(spec.orders, shred=rng.choice([0.0, 0.3, 1.0]))
    strategy = kind(configuration, np.random.default_rng(seed))
    exact, shed = JoinOperator(spec), JoinOperator(spec, strategy)
    for batch in cut:
        assert collect(shed, batch, 50) == collect(exact, batch, 50)
    assert strategy.completeness.share == 1
    assert strategy.completeness.interval == (1, 1)


def cameras(rate=60.0, seconds=12.0, seed=0, m=3):
    tau, kappa = (0, 1, 3, 2, 0)[:m], (2, 2, 50, 50, 50)[:m]
    streams = camera_streams(rate, seconds, tau, kappa, D=200, eta=10, seeds=range(seed, seed + m))
    return [camera_table(stream) for stream in streams]


def in_batches(tables, seconds=1.5):
    first = min(t.column("ts")[0].value for t in tables)
    times = [t.column("ts").cast(pa.int64()).to_numpy() - first for t in tables]
    for start in range(0, int(max(own[-1] for own in times)) + 1, int(seconds * SECOND)):
        yield {
            i: t.slice(lo, hi - lo)
            for i, (t, own) in enumerate(zip(tables, times, strict=True))
            for lo, hi in [own.searchsorted([start, start + int(seconds * SECOND)])]
        }


def run(operator: JoinOperator, cut) -> Counter:
    found: Counter = Counter()
    for batch in cut:
        for chunk in operator.process(batch):
            found.update(zip(*(column.to_pylist() for column in chunk.columns), strict=True))
    return found


@pytest.mark.parametrize("indexed", [False, True])
def test_a_harvest_finds_exactly_the_results_in_its_slices(indexed):
    tables = cameras()
    join = camera_join(3, window=4, basic=0.5, indexed=indexed)
    order, chosen = (2, 1), ((1, 2, 5, 6, 7), (0, 2, 3))
    harvests = (chosen, ((), ()), None)
    configuration = Configuration((order, (0, 2), (0, 1)), 0.5, harvests, harvests)
    operator = JoinOperator(join.spec, GrubJoin(configuration, np.random.default_rng(0)))
    times = [t.column("ts").cast(pa.int64()).to_numpy() for t in tables]
    expected = Counter()
    for ids, count in run(JoinOperator(join.spec), in_batches(tables)).items():
        t = [int(own[i]) for own, i in zip(times, ids, strict=True)]
        last = max(range(3), key=lambda s: (t[s], s))
        lags = [(t[0] - t[target]) // (SECOND // 2) for target in order]
        inside = all(min(lag, 7) in own for lag, own in zip(lags, chosen, strict=True))
        if last == 2 or (last == 0 and inside):
            expected[ids] += count
    assert sum(expected.values()) > 1000
    assert run(operator, in_batches(tables)) == expected
    assert operator.statistics.directions[1].work == 0


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("chosen", "partly"),
    [
        ((1, 2), Span(1_500_000, 1_700_001)),
        ((3,), Span(1_200_000, 1_500_000)),
        ((), Span(3_600_000, 4_000_001)),
    ],
    ids=["older than its neighbour", "newer", "alone"],
)
def test_a_part_of_a_slice_is_found_to_the_microsecond(chosen, partly, indexed):
    tables = cameras(m=2)
    join = camera_join(2, window=4, basic=0.5, eps=70, indexed=indexed)
    harvests = ((chosen,), ((),))
    configuration = Configuration(join.spec.orders, 0.5, harvests, harvests, partly=(partly, None))
    operator = JoinOperator(join.spec, Adaptive(configuration, np.random.default_rng(0)))
    times = [t.column("ts").cast(pa.int64()).to_numpy() for t in tables]
    expected, compared = Counter(), 0
    for (i, k), count in run(JoinOperator(join.spec), in_batches(tables)).items():
        lag = int(times[0][i]) - int(times[1][k])
        if lag >= 0 and (lag // (SECOND // 2) in chosen or partly.start <= lag < partly.stop):
            expected[i, k] += count
    for t in times[0]:
        lags = t - times[1]
        inside = np.isin(lags // (SECOND // 2), chosen) | ((lags >= partly.start) & (lags < partly.stop))
        compared += int(inside.sum())
    assert len(expected) > 20
    assert run(operator, in_batches(tables)) == expected
    first, second = operator.statistics.directions
    assert second.work == 0
    # What is touched is what lies in these slices, no more.
    assert indexed or first.work == compared + len(expected)


def test_orders_change_between_batches_without_a_trace():
    tables = cameras(rate=40, m=4)
    join = camera_join(4, window=4, basic=0.5, indexed=True)
    strategy = GrubJoin(Configuration(join.spec.orders, shred=0.2), np.random.default_rng(0))
    operator = JoinOperator(join.spec, strategy)
    rng = Random(1)
    found: Counter = Counter()
    for batch in in_batches(tables):
        found += run(operator, [batch])
        orders = [rng.sample([k for k in range(4) if k != i], 3) for i in range(4)]
        strategy.configure(Configuration(tuple(map(tuple, orders)), shred=0.2))
    assert sum(found.values()) > 1000
    assert found == run(JoinOperator(join.spec), in_batches(tables))


def test_rows_that_see_everything_teach_the_exact_counts():
    tables = cameras(rate=30)
    for indexed in (False, True):
        join = camera_join(3, window=4, basic=0.5, indexed=indexed)
        strategy = GrubJoin(Configuration(join.spec.orders, shred=1.0), np.random.default_rng(0))
        operator = JoinOperator(join.spec, strategy)
        found = run(operator, in_batches(tables))
        times = [t.column("ts").cast(pa.int64()).to_numpy() for t in tables]
        assert sum(d.results for d in strategy.tally.directions) == sum(found.values())
        for origin, tally in enumerate(strategy.tally.directions):
            assert tally.rows == tally.learned == tables[origin].num_rows
            for target in range(3):
                if target != origin:
                    lags = [
                        min((int(times[origin][ids[origin]]) - int(times[target][ids[target]])) // 500_000, 7)
                        for ids in found
                        if _last(times, ids) == origin
                    ]
                    expected = np.bincount(np.array(lags, int) + 8, minlength=16)
                    assert tally.lag(target, 16).tolist() == expected.tolist()
            first, second = join.spec.orders[origin]
            hop = tally.hop((frozenset([origin, first]), second), 16)
            counters = operator.statistics.directions[origin].hops[1]
            assert hop.touched.sum() + hop.searches == pytest.approx(counters.work)
            assert hop.partials.sum() == counters.partials == tally.results


def test_rows_that_sift_find_the_same_and_learn_of_their_first_hop_as_if_they_saw_all():
    tables = cameras()
    join = camera_join(3, window=4, basic=0.5, indexed=True)

    def shred(first, *, sifts):
        """The results, and what the first and the second hop of each direction taught."""
        configuration = replace(GRUB, shred=0.3, thins=((first, 0.9),) * 3, sifts=(sifts,) * 3)
        strategy = GrubJoin(configuration, np.random.default_rng(0))
        found = run(JoinOperator(join.spec, strategy, seed=1), in_batches(tables))
        tallies = strategy.tally.directions
        own = [
            (tally.hop((frozenset([i]), one), 16), tally.hop((frozenset([i, one]), two), 16))
            for i, (tally, (one, two)) in enumerate(zip(tallies, GRUB.orders, strict=True))
        ]
        gone = [
            tally.sifted / max(1e-9, hops[0].partials.sum()) for tally, hops in zip(tallies, own, strict=True)
        ]
        assert gone == pytest.approx([0.8 if sifts and hops[0].partials.any() else 0.0 for hops in own])
        return found, [list(map(repr, hops)) for hops in zip(*own, strict=True)]

    thinned, sifted, whole = shred(0.2, sifts=False), shred(0.2, sifts=True), shred(1.0, sifts=False)
    assert sifted[0] == thinned[0] != whole[0]
    assert sum(thinned[0].values()) > 1000
    assert sifted[1][0] == whole[1][0] != thinned[1][0]
    assert sifted[1][1] == thinned[1][1] != whole[1][1]


def _last(times, ids) -> int:
    t = [int(own[i]) for own, i in zip(times, ids, strict=True)]
    return max(range(3), key=lambda s: (t[s], s))


def estimates(kind, configuration, join, tables, seeds):
    """Completeness, delivered and true number of results, for each seed."""
    cut = list(in_batches(tables, 3))
    whole = sum(run(JoinOperator(join.spec), cut).values())
    for seed in seeds:
        strategy = kind(configuration, np.random.default_rng(seed))
        operator = JoinOperator(join.spec, strategy, seed)
        parts = Completeness()
        for batch in cut:
            for _ in operator.process(batch):
                pass
            parts += operator.completeness
        assert parts.delivered == strategy.completeness.delivered
        yield strategy.completeness, whole


HARVEST = ((4, 5, 6), tuple(range(-8, 8)))
GRUB = Configuration(
    ((2, 1), (0, 2), (0, 1)),
    0.3,
    (HARVEST, ((1, 2, 3), (1, 2, 3)), ((), ())),
    (((5, 6), (1, 2, 3)), ((), ()), ((), ())),
    0.4,
    0.1,
)


#: Rows of the second stream may cost more than both settings do, and those of the others less.
PACED = replace(GRUB, pace=Pace((12.0, 40.0, 5.0), 1500.0, 0.4, cheap=0.3, dear=0.8, whole=3.0))

#: Rows of one stream probe everything, unless that is too dear.
PACED_WHOLE = replace(
    PACED,
    dear=(None, *GRUB.dear[1:]),
    cheap=(None, *GRUB.cheap[1:]),
    pace=Pace((3.0, 3.0, 3.0), 500.0, 0.1, cheap=0.8, dear=0.9, whole=3.0),
)

#: Two whole slices and a part of a third in one direction, some rows with a part of one in the other.
SELECTED = Configuration(
    ((1,), (0,)),
    0.3,
    (((0, 1),), ((0, 4),)),
    (((0, 1),), ((),)),
    0.6,
    0.05,
    thins=((1.0,), (1.0,)),
    partly=(Span(1_000_000, 1_200_000), Span(500_000, 600_000)),
)


@pytest.mark.parametrize(
    ("kind", "configuration"),
    [
        (GrubJoin, GRUB),
        (GrubJoin, PACED),
        (GrubJoin, PACED_WHOLE),
        (RandomDrop, Configuration(GRUB.orders, 0.3, shred=0.1, keep=(0.5, 0.8, 0.7))),
        (Adaptive, SELECTED),
    ],
)
def test_the_interval_covers_the_true_share(kind, configuration):
    """Over 200 seeded runs: no bias, and the 95 % interval covers the truth in at least 90 % of them."""
    m = len(configuration.orders)
    join = camera_join(m, window=4, basic=0.5, indexed=True)
    found = list(estimates(kind, configuration, join, cameras(m=m), range(200)))
    totals = [c.delivered + c.missed for c, _ in found]
    whole = found[0][1]
    assert np.mean(totals) == pytest.approx(whole, rel=4 * np.std(totals) / whole / len(totals) ** 0.5)
    covered = [c.interval[0] <= c.delivered / whole <= c.interval[1] for c, whole in found]
    assert np.mean(covered) >= 0.9
    # An interval that always covers could be as wide as it likes: this one is not.
    widths = [c.interval[1] - c.interval[0] for c, _ in found]
    assert np.mean(widths) < 0.35


def test_a_pace_makes_rows_probe_nothing_or_everything():
    join = camera_join(3, window=4, basic=0.5, indexed=True)
    strategy = GrubJoin(PACED, np.random.default_rng(0))
    run(JoinOperator(join.spec, strategy), in_batches(cameras(m=3)))
    rows = np.array([own.rows for own in strategy.tally.directions])
    probed = np.array([own.harvested[:, 0] for own in strategy.tally.directions])
    assert probed[:, 2].min() > 0, "some of each stream probe everything"
    assert probed[0].sum() < 0.9 * (1 - PACED.shred) * rows[0], "and some nothing"


SLICES = camera_join(3, window=4, basic=0.5).spec.slices
HORIZONS = farthest((*GRUB.dear, *GRUB.cheap), GRUB.orders * 2, SLICES)
SAVING = replace(GRUB, horizons=HORIZONS, reserve=0.2)


def saving_runs(seeds, configurations=(GRUB, SAVING)):
    """A join that drops what no harvest reaches, and one that does not: operators and numbers of results."""
    join, tables = camera_join(3, window=4, basic=0.5, indexed=True), cameras()
    whole = sum(run(JoinOperator(join.spec), in_batches(tables)).values())
    for seed in seeds:
        operators = []
        for configuration in configurations:
            operator = JoinOperator(join.spec, GrubJoin(configuration, np.random.default_rng(seed)), seed)
            size = 0
            for batch in in_batches(tables):
                for _ in operator.process(batch):
                    pass
                operator.expire(max(t.column("ts")[-1].value for t in batch.values() if t.num_rows))
                size = max(size, operator.window_rows)
            operators.append((operator, size))
        yield operators, whole


def test_rows_that_no_harvest_reaches_are_dropped():
    assert SAVING.horizons == (2 * SECOND, None, 3_500_000)
    (plain, full_size), (saving, size) = next(saving_runs([3]))[0]
    assert [s.evicted for s in plain.statistics.streams] == [0, 0, 0]
    assert saving.statistics.streams[0].evicted > 0 == saving.statistics.streams[1].evicted
    assert size < 0.9 * full_size
    # Rows that harvest find what they found before; only shredded ones see less.
    harvested = plain.strategy.completeness.delivered
    assert saving.strategy.completeness.delivered > 0.9 * harvested


def test_what_is_missed_is_still_known_when_rows_are_dropped():
    runs = saving_runs(range(60), [SAVING])
    found = [(operator.strategy.completeness, whole) for [(operator, _)], whole in runs]
    totals, whole = [c.delivered + c.missed for c, _ in found], found[0][1]
    assert np.mean(totals) == pytest.approx(whole, rel=4 * np.std(totals) / whole / len(totals) ** 0.5)
    covered = [c.interval[0] <= c.delivered / whole <= c.interval[1] for c, whole in found]
    assert np.mean(covered) >= 0.9


def test_rows_that_were_dropped_are_still_missed_when_everything_is_probed_again():
    join, tables = camera_join(3, window=4, basic=0.5, indexed=True), cameras()
    batches = list(in_batches(tables))
    half = len(batches) // 2
    short = replace(SAVING, horizons=(SECOND // 2,) * 3)

    def results(operator):
        """Those of the second half, and what is missed then."""
        before = found = 0
        for number, batch in enumerate(batches):
            if number == half:
                before, found = operator.strategy.completeness.missed, 0
                operator.strategy.configure(Configuration(GRUB.orders, shred=GRUB.shred))
            found += sum(chunk.num_rows for chunk in operator.process(batch))
            operator.expire(max(t.column("ts")[-1].value for t in batch.values() if t.num_rows))
        return found, operator.strategy.completeness.missed - before

    whole, none = results(JoinOperator(join.spec))
    runs = [
        results(JoinOperator(join.spec, GrubJoin(short, np.random.default_rng(seed)), seed))
        for seed in range(20)
    ]
    assert none == 0 and max(found for found, _ in runs) < 0.95 * whole
    totals = [found + missed for found, missed in runs]
    assert np.mean(totals) == pytest.approx(whole, rel=4 * np.std(totals) / whole / len(totals) ** 0.5)
