"""Remembering, correcting and ordering between intervals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparkshed.experiments.joins import camera_join
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.choosers import choose
from sparkshed.planner.harvest.evenness import even
from sparkshed.planner.harvest.learning import learned_model
from sparkshed.planner.harvest.memory import contradicts, evidence, remember
from sparkshed.planner.harvest.model import DirectionModel, HopModel, JoinModel
from sparkshed.planner.harvest.tally import DirectionTally, HopTally, Tally
from sparkshed.planner.harvesting import HarvestAdapter, eagerness
from sparkshed.planner.lessons import lesson_work, sifts_for, thins_for, try_for
from sparkshed.planner.ordering import other_orders

SLICES = 10


def direction(peak: int, *, origin=0, targets=(1,), rows=100.0, size=50.0, found=2.0) -> DirectionTally:
    """Rows whose results are all in one slice of each target."""
    own = DirectionTally(rows=rows, learned=rows / 10, results=rows, work=rows * size)
    for target in targets:
        hop = own.hop((frozenset([origin]), target), SLICES)
        hop.probes = rows
        hop.pairs += size * rows / SLICES
        hop.touched += size * rows / SLICES
        hop.partials[peak] = found * rows
        own.lag(target, SLICES)[peak] = rows
    return own


def tally(*directions: DirectionTally) -> Tally:
    return Tally(list(directions), [np.zeros(2 * SLICES) for _ in directions])


def test_a_lag_that_moved_contradicts_what_was_known():
    assert contradicts(direction(7), direction(2), 0)
    assert not contradicts(direction(7), direction(7), 0)
    assert not contradicts(direction(7), direction(2, rows=1.0), 0), "a few results prove nothing"
    known = remember(tally(direction(7)), tally(direction(2)), 5.0).directions[0]
    assert known.lags[1][2] > 10 * known.lags[1][7]


def test_noise_does_not_contradict():
    rng = np.random.default_rng(0)
    shape = np.exp(-((np.arange(SLICES) - 5) ** 2) / 4)
    alarms = 0
    for _ in range(200):
        two = [direction(5, rows=300.0) for _ in range(2)]
        for own in two:
            own.lags[1][:] = rng.multinomial(60, shape / shape.sum()) * 5
        alarms += contradicts(*two, 0)
    assert alarms <= 2


def test_what_was_learned_is_restated_for_the_windows_of_today():
    known = remember(
        tally(direction(3, size=50.0, found=2.0)), tally(direction(3, size=100.0, found=4.0)), 5.0
    )
    hop = known.directions[0].hops[frozenset([0]), 1]
    assert hop.per_probe(hop.touched).sum() == pytest.approx(100, rel=0.01)
    assert hop.per_probe(hop.partials).sum() == pytest.approx(4, rel=0.01)


def test_a_slice_that_was_empty_until_now_is_not_taken_for_a_bad_one():
    old, new = direction(3), direction(7, rows=2.0)
    for hop in old.hops.values():
        hop.pairs[7] = hop.touched[7] = 0.0
    known = remember(tally(old), tally(new), 5.0)
    hop = known.directions[0].hops[frozenset([0]), 1]
    assert hop.per_probe(hop.partials)[7] == pytest.approx(2.0, rel=0.1)
    assert hop.per_probe(hop.touched)[7] == pytest.approx(5.0, rel=0.1)
    copied = known.copy().directions[0].hops[frozenset([0]), 1]
    assert copied.per_probe(copied.partials)[7] == hop.per_probe(hop.partials)[7]


def test_much_evidence_is_forgotten_faster_than_little():
    kept = {}
    for rows in (5.0, 2000.0):
        known = remember(tally(direction(3, rows=rows)), tally(direction(3, rows=rows)), 5.0).directions[0]
        kept[rows] = known.results / rows - 1
    assert kept[5.0] == pytest.approx(0.5 ** (5 / 60))
    assert kept[2000.0] == pytest.approx(0.5)


def test_partial_results_that_were_sifted_out_are_no_evidence():
    known = direction(3, rows=100.0)
    whole = evidence(known, 0)
    known.sifted = 0.75 * whole
    assert evidence(known, 0) == pytest.approx(0.25 * whole) != 0
    doubled = Tally.sum([tally(known), tally(known)])
    assert doubled is not None
    doubled.decay(0.5)
    assert evidence(doubled.directions[0], 0) == pytest.approx(0.25 * whole)


def test_rates_follow_at_once():
    known = remember(tally(direction(3, rows=1000.0)), tally(direction(3, rows=10.0)), 5.0)
    assert known.directions[0].rows == pytest.approx(0.25 * 1000 + 10)


def test_hops_of_former_orders_are_forgotten():
    old, new = direction(3), direction(3)
    old.hops[frozenset([0, 2]), 1] = HopTally.empty(SLICES)
    known = remember(tally(old), tally(new), 5.0).directions[0]
    assert set(known.hops) == {(frozenset([0]), 1)}


def adapter(m=3, **policy):
    join = camera_join(m, window=10, basic=1)
    start = Configuration(join.spec.orders, shred=0.1)
    return HarvestAdapter(start, join.spec.slices, join.graph, Policy(**policy))


def camera_tally(work: float = 5000.0) -> Tally:
    """Stream 0 finds stream 1 in one slice and stream 2 in many; the others find next to nothing.

    There are as many matches in both windows, so selectivities do not tell which one to probe first.
    """
    directions = []
    for origin in range(3):
        own = DirectionTally(rows=1000.0, learned=100.0, work=work * 1000)
        for target in {0, 1, 2} - {origin}:
            spread = np.zeros(20)
            spread[15 if target == 1 else slice(12, 20)] = 1.0
            lags = spread / spread.sum() * (1000.0 if origin == 0 else 0.1)
            own.lag(target, 20)[:] = lags
            third = 3 - origin - target
            for joined in (frozenset([origin]), frozenset([origin, third])):
                hop = own.hop((joined, target), 20)
                hop.probes = 100.0
                hop.pairs[10:] += 100 * 80.0
                hop.touched[10:] += 100 * 80.0
                hop.partials += spread / spread.sum() * 100 * (10.0 if origin == 0 else 0.01)
        own.results = 1000.0 if origin == 0 else 0.1
        directions.append(own)
    return Tally(directions, [np.zeros(40) for _ in range(3)])


def test_a_window_with_one_good_slice_is_probed_last():
    modelled = adapter().adapt(camera_tally(), 0.1)
    assert modelled.orders[0] == (2, 1)
    selective = adapter(by_selectivity=True).adapt(camera_tally(), 0.1)
    assert selective.orders[0] == (1, 2), "equal selectivities leave the order as it was"
    assert adapter(fixed=True).adapt(camera_tally(), 0.1).orders[0] == (1, 2)


def test_a_dearer_direction_gets_less():
    plain, dear = adapter(fixed=True), adapter(fixed=True)
    for own, factor in ((plain, 1.0), (dear, 3.0)):
        first = own.adapt(camera_tally(), 0.2)
        learned, _ = own.expected
        again = camera_tally()
        for origin, known in enumerate(again.directions):
            partials = learned.model.directions[origin].hops[0].partials
            kinds = ((first.dear, first.mix), (first.cheap, 1 - first.mix))
            for kind, (harvests, share) in enumerate(kinds):
                rows = (1 - first.shred) * share * known.rows
                places = learned.places(origin, harvests[origin])[0]
                known.harvested[kind] = rows, rows * sum(partials[place] for place in places)
            known.work = factor * sum(own._row_cost(learned, origin, known)) * known.rows
        second = own.adapt(again, 0.2)
        assert first.dear[0] is not None and second.dear[0] is not None
    assert plain.corrections[0] == pytest.approx(1.0, rel=0.05)
    assert dear.corrections[0] > 1.5


def test_full_budget_is_the_exact_join():
    assert adapter().adapt(camera_tally(), 1.0).is_exact


@pytest.mark.parametrize("chooser", ["lagrange", "greedy", "greedy_reverse", "greedy_double", "exhaustive"])
@pytest.mark.parametrize("per_stream", [False, True])
def test_every_chooser_keeps_to_the_budget(chooser, per_stream):
    outputs = []
    for z in (0.05, 0.2, 0.6):
        own = adapter(chooser=chooser, per_stream=per_stream, fixed=True)
        configuration = own.adapt(camera_tally(), z)
        learned, choice = own.expected
        budget = z * learned.model.full_cost
        assert choice.cost(learned.model) <= budget * (1 + 1e-9)
        # What is left pays for the rows that teach.
        assert choice.cost(learned.model) >= 0.5 * budget
        assert 0 < configuration.shred <= 0.1
        assert configuration.throttle == z
        outputs.append(choice.output(learned.model))
    # Taking slices away from everything, `greedy_reverse` may end with none of the good ones.
    assert max(outputs) > 0 or chooser == "greedy_reverse"


def test_what_was_spent_too_much_is_paid_back():
    paid = []
    for work in (1.0, 1e9):
        own = adapter(fixed=True)
        own.adapt(camera_tally(), 0.2)
        for _ in range(3):
            own.adapt(camera_tally(work), 0.2)
        learned, choice = own.expected
        paid.append(choice.cost(own._corrected(learned.model)))
    saved, overdrawn = paid
    assert 1.5 * overdrawn < saved


def test_graph_limits_orders():
    own = adapter(m=5)
    others = other_orders(own._graph, 0, (1, 2, 3, 4))
    assert len(others) == len(list(combinations(range(4), 2)))
    assert all(sorted(order) == [1, 2, 3, 4] for order in others)


def test_a_budget_far_from_what_was_spent_is_not_believed():
    own = adapter(follows=True)
    own.adapt(camera_tally(work=5000.0), 0.1)
    before = own.configuration.throttle
    taught = camera_tally(work=5000.0)
    for direction in taught.directions:
        for hop in direction.hops.values():
            hop.touched *= 1e-3
    own.learned = None
    own.adapt(taught, 0.1)
    assert own.configuration.throttle > 5 * before, "work did not become cheaper because the model says so"


def test_slices_that_only_luck_tells_apart_are_taken_for_equal():
    rng = np.random.default_rng(0)
    base = np.linspace(1, 2, 20)
    drawn = [rng.multinomial(400, base / base.sum()).astype(float) for _ in range(200)]
    assert sum(even(counts, base, 400.0) for counts in drawn) >= 190
    peak = base.copy()
    peak[4:6] *= 3
    drawn = [rng.multinomial(400, peak / peak.sum()).astype(float) for _ in range(200)]
    assert sum(even(counts, base, 400.0) for counts in drawn) <= 5
    assert not even(drawn[0] * 0 + 1, base, 20.0), "a small sample proves nothing"
    assert not even(np.zeros(20), base, 400.0)
    assert not even(base, np.zeros(20), 400.0)


def test_where_time_does_not_matter_a_slice_without_luck_is_not_cheaper():
    """Results are work. If only the costs of slices showed where there were few, those would be chosen."""
    rng = np.random.default_rng(8)
    own = direction(0, rows=1000.0)
    hop = own.hops[frozenset([0]), 1]
    for sizes in (None, np.full(SLICES, 7.0)):
        hop.sizes = sizes
        hop.partials[:] = own.lags[1][:] = rng.multinomial(8 * 500, [1 / SLICES] * SLICES)
        hop.touched[:] = hop.pairs + hop.partials
        own.results = float(hop.partials.sum())
        slices = camera_join(2, window=10, basic=2).spec.slices
        learned = learned_model(tally(own, DirectionTally()), ((1,), (0,)), slices)
        (model,) = learned.model.directions[0].hops
        ratios = np.array(model.share) / np.array(model.cost)
        np.testing.assert_allclose(ratios, ratios[0])
        # All of the work is still there; the last unit is the result that is assumed.
        found = hop.per_probe(hop.touched).sum() + hop.per_probe(hop.partials).sum()
        assert sum(model.cost) == pytest.approx(found, rel=0.01)


def test_less_is_learned_where_choosing_gains_nothing():
    def join(shares):
        hop = HopModel(cost=(10.0,) * 4, partials=(1.0,) * 4, share=shares)
        return JoinModel((DirectionModel(10.0, 4.0, (hop,)), DirectionModel(10.0, 4.0, (hop,))))

    for shares, low, high in (((1, 1, 1, 1), 0.2, 0.2), ((1, 0, 0, 0), 1, 1), ((1.2, 1, 1, 0.8), 0.2, 0.5)):
        model = join(shares)
        choice = choose(model, 0.25 * model.full_cost)
        assert low <= eagerness(model, model, choice) <= high
    model = join((1, 0, 0, 0))
    assert eagerness(model, model, choose(model, 0.95 * model.full_cost)) == 1, "the most that can be gained"


def test_windows_that_are_not_first_are_tried_as_far_as_that_is_cheap():
    hops = (
        HopModel((100.0,) * 10, (1.0,) * 10, (1.0,) * 10),
        HopModel((100.0,) * 10, (1.0,) * 10, (1.0,) * 10),
    )
    own = DirectionModel(10.0, 1.0, hops)
    thins = thins_for(own, 0.01, 1.5)
    # A row costs 1,000 + 10 · 1,000 units in full, 110 with a hundredth of the work; of that a hundredth.
    assert try_for(own, thins, 0.1, 0.01) == pytest.approx(1.1 / 0.1 / 1000)
    assert try_for(own, thins, 0.001, 0.01) == 1
    assert try_for(own, thins, 1.0, 0.01) == pytest.approx(np.prod(thins)), "never less than for results"
    more = lesson_work(own, thins, 0.5) - lesson_work(own, thins, 0.1)
    assert more == pytest.approx(0.4 * 1000)


def test_first_windows_are_sifted_where_that_costs_no_more_than_their_search():
    def own(base, hops=2):
        return DirectionModel(10.0, 1.0, (HopModel((1.0,) * 10, (1.0,) * 10, (1.0,) * 10, base),) * hops)

    indexed, scanned = own(base=9.0), own(base=0.0)
    assert sifts_for(indexed, (0.1, 1.0))
    assert not sifts_for(own(base=8.0), (0.1, 1.0))
    assert not sifts_for(indexed, (1.0, 0.1)), "nothing is left out"
    assert not sifts_for(scanned, (0.1, 1.0))
    assert sifts_for(scanned, (0.4, 0.25), promised=True) and not sifts_for(scanned, (0.4, 0.25))
    assert not sifts_for(scanned, (0.6, 0.2), promised=True), "most of it is seen anyway"
    assert not sifts_for(scanned, (0.01, 0.01), promised=True), "more than all else"
    assert not sifts_for(own(base=9.0, hops=1), (0.1,)), "nothing follows"
    more = lesson_work(indexed, (0.1, 1.0), sifts=True) - lesson_work(indexed, (0.1, 1.0))
    assert more == pytest.approx(0.9 * 10)


def test_a_hop_that_was_never_made_finds_less_than_a_first_one():
    joined = direction(3, targets=(1, 2, 3), found=8.0)
    hop = joined.hop((frozenset([0, 1]), 2), SLICES)
    hop.probes, hop.partials[3] = 100.0, 400.0
    hop.pairs += 5.0
    others = [direction(3, origin=i, targets=[k for k in range(4) if k != i]) for i in range(1, 4)]
    slices = camera_join(4, window=10, basic=2).spec.slices
    orders = ((1, 3, 2), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    learned = learned_model(tally(joined, *others), orders, slices)
    assert learned is not None
    first, second, third = learned.model.directions[0].hops
    assert sum(first.partials) == pytest.approx(8, rel=0.01)
    assert sum(second.partials) == pytest.approx(4, rel=0.01), "as in the hop that was made"
    assert sum(third.partials) == pytest.approx(4, rel=0.01)


def test_what_a_later_hop_has_not_met_is_not_free():
    tallies = camera_tally()
    hop = tallies.directions[0].hops[frozenset([0, 1]), 2]
    for counts in (hop.pairs, hop.touched, hop.partials):
        counts[10:18] = 0
    slices = camera_join(3, window=10, basic=1).spec.slices
    learned = learned_model(tallies, ((1, 2), (0, 2), (0, 1)), slices)
    assert learned is not None
    second = learned.model.directions[0].hops[1]
    assert len(learned.numbers[0][1]) == 10, "direct probes met rows in ten slices"
    assert all(cost >= 79 for cost in second.cost)


def test_slices_that_nobody_met_are_harvested_only_with_all_others():
    learned = learned_model(camera_tally(), ((1, 2), (0, 2), (0, 1)), camera_join(3, 10, 1).spec.slices)
    assert learned is not None
    slices = [camera_join(3, window=10, basic=1).spec.slices[0][k] for k in (1, 2)]
    every = tuple(range(10))
    assert learned.harvest(0, (every, every), slices) is None
    first, second = learned.harvest(0, (every, (0, 1)), slices)
    assert len(first) == slices[0].count
    assert second == learned.numbers[0][1][:2]


@pytest.mark.parametrize("blind", [0, 2])
def test_there_is_no_plan_while_a_stream_taught_nothing(blind):
    own = adapter(follows=True)
    own.adapt(camera_tally(), 0.2)
    planned = own.configuration
    other = adapter(follows=True)
    other.follow(planned)
    unseen = camera_tally()
    for hop in unseen.directions[blind].hops.values():
        hop.probes *= 1e-4
        for counts in (hop.pairs, hop.touched, hop.partials):
            counts[:] = 0
    assert other.adapt(unseen, 0.1) is planned and not other.is_planned
    assert other.adapt(camera_tally(), 0.1) is not planned and other.is_planned


def test_rows_that_will_come_are_planned_for():
    spent = []
    for rows in (None, (0.0, 1000.0, 1000.0)):
        own = adapter(fixed=True)
        own.adapt(camera_tally(), 0.2, rows=rows)
        learned, choice = own.expected
        spent.append([model.rate for model in learned.model.directions])
    assert spent[0] == [1000.0] * 3
    assert spent[1][0] < 1 and spent[1][1:] == [1000.0] * 2
