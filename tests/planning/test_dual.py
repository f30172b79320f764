"""The optimum of dual windows: the paper's formulas against brute force, and what the adapter makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from sparkshed.experiments.joins import keyed_join
from sparkshed.experiments.traces import Trace, opt
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import (
    BINS,
    Costs,
    best_threshold,
    bins_of,
    front_share,
    mixture,
    optimum,
    output,
    rear_share,
    split,
)
from sparkshed.planner.dualling import DualAdapter
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.wire import configuration_from_json, configuration_to_json

ORDERS = ((1,), (0,))


def random_shares(rng, size):
    """Yields of any distribution, some of which never occur."""
    shares = rng.random(size) * (rng.random(size) < 0.6) + 1e-9
    return shares / shares.sum()


@pytest.mark.parametrize("seed", range(50))
def test_the_search_finds_the_best_threshold(seed):
    rng = np.random.default_rng(seed)
    shares, alpha = random_shares(rng, int(rng.integers(2, 80))), float(rng.exponential(0.5))
    curve = [output(shares, least, alpha) for least in range(len(shares))]
    assert curve[best_threshold(shares, alpha)] == pytest.approx(max(curve))


def test_matches_of_uniform_values_are_binomial():
    shares = mixture([1 / 50] * 50, [1 / 50] * 50, 400)
    assert shares.sum() == pytest.approx(1)
    mean = float((np.arange(401) * shares).sum())
    assert mean == pytest.approx(8)
    assert float(((np.arange(401) - mean) ** 2 * shares).sum()) == pytest.approx(400 / 50 * 49 / 50)


def test_at_the_optimum_the_cpu_is_busy():
    shares = random_shares(np.random.default_rng(1), 40)
    best = optimum(shares, probes=100, updates=700)
    assert rear_share(best.speed, 100, 700) == pytest.approx(best.rear)
    assert front_share(2 * best.speed, best.speed) == pytest.approx(0.5)


@pytest.mark.parametrize("budget", [0.02, 0.1, 0.2])
def test_with_constant_costs_the_split_is_the_papers(budget):
    shares = random_shares(np.random.default_rng(2), 60)
    costs = Costs(scan=90, match=0, update=30, probe=10)
    best = optimum(shares, probes=1 / 100, updates=1 / 30)
    found = split(np.arange(60.0), shares, costs, budget, of_kept=True)
    arriving = 1 / (budget * 130)
    assert found.rear == pytest.approx(best.rear, abs=1e-6)
    assert found.speed == pytest.approx(best.speed / arriving)
    assert 1 - found.keep == pytest.approx(front_share(arriving, best.speed))


@pytest.mark.parametrize("of_kept", [True, False])
def test_a_split_spends_its_budget_and_beats_others(of_kept):
    rng = np.random.default_rng(3)
    shares, matched = random_shares(rng, 30), np.arange(30.0)
    costs = Costs(scan=200, match=1)

    def spend(keep, rear):
        order = np.cumsum(shares)
        probing = np.clip(order - rear, 0, shares)
        fill = 1.0 if of_kept else keep
        work = keep * (costs.update + float((probing * (costs.probe + fill * (200 + matched))).sum()))
        return work, keep * fill * float((probing * matched).sum())

    for budget in (0.05, 0.2, 0.5, 0.9):
        best = split(matched, shares, costs, budget, of_kept=of_kept)
        limit = budget * costs.full(float((matched * shares).sum()))
        work, gained = spend(best.keep, best.rear)
        assert work == pytest.approx(limit, rel=1e-6)
        for keep, rear in rng.random((300, 2)):
            other, results = spend(keep, rear)
            assert other > limit or results <= gained * 1.001


def tally(rng, rows=1000, scan=100.0):
    own = Tally.empty(2, 0)
    for direction in own.directions:
        found = rng.poisson(20, rows).astype(float)
        bins = bins_of(found)
        direction.yields = np.stack([np.bincount(bins, minlength=BINS), np.bincount(bins, found, BINS)])
        direction.rows = direction.joined = direction.learned = float(rows)
        direction.results = float(found.sum())
        direction.work = scan * rows + found.sum()
    return own


def adapter(**policy):
    join = keyed_join(rows=100, indexed=False)
    own = DualAdapter(Configuration(ORDERS), join.spec.slices, join.graph, Policy(**policy))
    own.knows(join.spec)
    return own


def test_the_adapter_sheds_at_the_rear_first_and_then_in_front():
    rng = np.random.default_rng(4)
    own = adapter(follows=True)
    little = own.adapt(tally(rng), 0.9)
    assert little.keep == (1.0, 1.0) and 0 < min(little.rear) < 0.3 and not little.is_exact
    assert configuration_from_json(configuration_to_json(little)) == little
    much = adapter(follows=True).adapt(tally(rng), 0.05)
    assert max(much.keep) < 0.5 and min(much.rear) > 0.1
    assert own.adapt(tally(rng), 1.0).is_exact


def test_nothing_is_planned_before_a_row_probed():
    own = adapter()
    own.adapt(Tally.empty(2, 0), 0.5)
    assert not own.is_planned and own.configuration.is_exact


def test_what_was_spent_too_much_is_made_up_for():
    rng = np.random.default_rng(5)
    promised, following = adapter(), adapter(follows=True)
    first = tally(rng)
    careful, plain = (own.adapt(first.copy(), 0.5) for own in (promised, following))
    assert careful.keep[0] * (1 - careful.rear[0]) < 0.8 * plain.keep[0] * (1 - plain.rear[0])


def test_the_budget_is_a_share_of_what_came_and_not_of_what_was_let_in():
    """Rows are dropped at random. If fewer than planned are let in, there is more time for each of them."""
    owed = []
    for let_in in (0.9, 1.1):
        own = adapter()
        keep = own.adapt(tally(np.random.default_rng(8)), 0.1).keep[0]
        before, interval = own.notes()["owed"], tally(np.random.default_rng(9))
        for each in interval.directions:
            each.joined = let_in * keep * each.rows
            each.learned, each.work = 0.05 * each.learned, 0.05 * each.work
        own.adapt(interval, 0.1)
        owed.append(own.notes()["owed"] - before)
    assert owed[0] > owed[1]


def test_opt_is_a_bound_and_near_the_best_choice():
    """Against every subset of the rows."""
    rng = np.random.default_rng(6)
    costs = Costs(scan=20, match=1, update=3, probe=2)
    for _ in range(20):
        found, kept = rng.integers(0, 12, 10), rng.random(10) < 0.8
        limit = float(rng.uniform(20, 250))
        left, units = limit - 3 * kept.sum(), 22 + found
        subsets = (np.arange(1 << 10)[:, None] >> np.arange(10)) & 1
        allowed = subsets[((subsets & ~kept) == 0).all(1)]
        allowed = allowed[allowed @ units <= left]
        best = int((allowed @ found).max()) if len(allowed) else 0
        bound = opt(found, kept, costs, limit)
        assert best - 1e-9 <= bound <= best + found.max() + 1e-9


def test_yields_of_a_trace_are_those_of_the_windows():
    rng = np.random.default_rng(7)
    trace = Trace(rng.integers(0, 2, 300), rng.integers(0, 6, 300), 20)
    kept = rng.random(300) < 0.7
    found = trace.yields(kept)
    for place in np.flatnonzero(kept).tolist():
        other = [n for n in range(place) if kept[n] and trace.streams[n] != trace.streams[place]][-20:]
        assert found[place] == sum(trace.keys[n] == trace.keys[place] for n in other)
