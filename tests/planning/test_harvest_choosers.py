"""Every chooser beside the best setting there is."""

from __future__ import annotations

from itertools import combinations, product
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.harvests import general_instance, paper_instance
from sparkshed.planner.harvest import CHOOSERS, METRICS, DirectionModel, HopModel, JoinModel, choose
from sparkshed.planner.harvest.filling import filled
from sparkshed.planner.harvest.hull import price_of

HEURISTICS = ("greedy", "greedy_reverse", "greedy_double")
THROTTLES = (0.05, 0.2, 0.4, 0.8)
SIZES = [(3, 10, 500, False), (3, 10, 100, True), (2, 10, 200, False), (4, 5, 60, False), (6, 2, 30, False)]


def check(model: JoinModel, budget: float) -> dict[str, float]:
    """Asserts what holds for every model, and returns outputs by chooser."""
    outputs = {}
    for name in CHOOSERS:
        choice = choose(model, budget, name)
        assert 0.0 < choice.mix <= 1.0
        assert choice.mix == 1.0 or (name == "lagrange" and choice.dear != choice.cheap)
        assert choice.mix < 1.0 or choice.dear == choice.cheap
        assert choice.cost(model) <= budget * (1 + 1e-9)
        for direction in choice.dear + choice.cheap:
            assert all(direction) or not any(direction)
            assert all(list(slices) == sorted(set(slices)) for slices in direction)
        outputs[name] = choice.output(model)
    best = outputs["exhaustive"]
    assert outputs["lagrange"] >= best * (1 - 1e-9)
    assert all(outputs[name] <= best * (1 + 1e-9) for name in HEURISTICS)
    return outputs


@pytest.mark.parametrize(("streams", "slices", "count", "include_output"), SIZES)
def test_lagrange_is_never_below_the_best_setting(streams, slices, count, include_output):
    for seed in range(count):
        model = paper_instance(seed, streams, slices, include_output)
        for z in THROTTLES:
            check(model, z * model.full_cost)


@pytest.mark.parametrize(("streams", "slices", "count"), [(3, 8, 150), (2, 10, 100), (4, 4, 40)])
def test_lagrange_is_exact_when_partials_do_not_follow_shares(streams, slices, count):
    for seed in range(count):
        model = general_instance(seed, streams, slices)
        for z in THROTTLES:
            check(model, z * model.full_cost)


@pytest.mark.parametrize("seed", range(8))
def test_no_set_of_slices_beats_lagrange(seed):
    """Also sets that are not in rank order: all of them, for one direction with two hops of four slices."""
    direction = general_instance(seed, 3, 4).directions[0]
    model = JoinModel((direction,))
    sets = [slices for size in range(1, 5) for slices in combinations(range(4), size)]
    points = [(direction.cost(s), direction.output(s)) for s in product(sets, sets)]
    for z in (0.01, *THROTTLES):
        budget = z * model.full_cost
        best = max([output for cost, output in points if cost <= budget], default=0.0)
        assert choose(model, budget).output(model) >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_lagrange_is_concave_in_the_budget(seed):
    """So it is the hull: no mixture of two of its answers beats the answer in between."""
    model = general_instance(seed, 3, 6)
    outputs = [choose(model, z / 40 * model.full_cost).output(model) for z in range(41)]
    assert outputs == sorted(outputs)
    for low, middle, high in zip(outputs, outputs[1:], outputs[2:], strict=False):
        assert middle >= (low + high) / 2 - 1e-9 * outputs[-1]
    assert outputs[-1] == pytest.approx(model.full_output)


def test_a_mixture_costs_what_the_budget_allows():
    model = paper_instance(3, 3, 10)
    for z in THROTTLES:
        choice = choose(model, z * model.full_cost)
        assert choice.mix < 1.0
        assert choice.cost(model) == pytest.approx(z * model.full_cost, rel=1e-12)
        assert model.cost(choice.cheap) < z * model.full_cost < model.cost(choice.dear)


def test_best_delta_is_close_to_the_best_on_average():
    for z, least in zip(THROTTLES, (0.9, 0.95, 0.97, 0.99), strict=True):
        ratios = []
        for seed in range(100):
            model = paper_instance(seed, 3, 10)
            best = choose(model, z * model.full_cost, "exhaustive").output(model)
            ratios.append(choose(model, z * model.full_cost, "greedy").output(model) / best)
        assert mean(ratios) >= least


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("chooser", HEURISTICS)
def test_metrics_are_feasible(chooser, metric):
    for seed in range(20):
        for model in (paper_instance(seed, 3, 6), general_instance(seed, 3, 6)):
            for z in THROTTLES:
                budget = z * model.full_cost
                choice = choose(model, budget, chooser, metric)
                assert choice.cost(model) <= budget * (1 + 1e-9)
                assert choice.output(model) <= choose(model, budget).output(model) * (1 + 1e-9)


def test_greedy_takes_slices_in_rank_order_and_freezes_what_does_not_fit():
    hop = HopModel(cost=(10, 10, 10, 10), partials=(0,) * 4, share=(1, 4, 3, 2))
    small = HopModel(cost=(1, 1), partials=(0, 0), share=(1, 1))
    model = JoinModel((DirectionModel(1, 100, (hop,)), DirectionModel(1, 10, (small,))))
    assert choose(model, 25, "greedy").dear == (((1, 2),), ((0, 1),))
    assert choose(model, 25, "greedy_reverse").dear == (((1, 2),), ((0, 1),))
    assert choose(model, 21, "exhaustive").dear == (((1, 2),), ((0,),))


@pytest.mark.parametrize("chooser", [*HEURISTICS, "exhaustive"])
def test_what_is_left_of_a_budget_is_filled_up(chooser):
    for seed in range(40):
        model = paper_instance(seed, 3, 10)
        for z in THROTTLES:
            budget = z * model.full_cost
            chosen = choose(model, budget, chooser)
            more = filled(model, budget, chosen)
            assert more.cost(model) == pytest.approx(budget)
            assert more.output(model) >= chosen.output(model)


def test_a_mixture_is_full_already():
    model = paper_instance(1, 3, 10)
    chosen = choose(model, 0.2 * model.full_cost)
    assert chosen.mix < 1 and filled(model, 0.2 * model.full_cost, chosen) == chosen


def test_greedy_double_changes_sides_at_its_threshold():
    for seed in range(10):
        model = paper_instance(seed, 3, 10)
        for z, side in ((0.49, "greedy"), (0.51, "greedy_reverse")):
            budget = z * model.full_cost
            assert choose(model, budget, "greedy_double") == choose(model, budget, side)


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_a_budget_for_everything_takes_everything(chooser):
    model = paper_instance(0, 3, 4)
    for budget in (model.full_cost, 2 * model.full_cost, float("inf")):
        choice = choose(model, budget, chooser)
        assert choice.dear == choice.cheap == model.full_setting
        assert choice.mix == 1.0


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_without_budget_everything_is_off(chooser):
    model = paper_instance(0, 3, 4)
    for budget in (0.0, -1.0):
        assert choose(model, budget, chooser).cost(model) == 0.0
    if chooser != "lagrange":
        assert choose(model, 1e-9, chooser).output(model) == 0.0


def test_a_tiny_budget_is_used_for_a_few_rows():
    model = paper_instance(0, 3, 4)
    choice = choose(model, 1e-9)
    assert 0.0 < choice.mix < 1e-9
    assert choice.output(model) > 0.0


def test_answers_do_not_depend_on_the_run():
    model = JoinModel((DirectionModel(1, 1, (HopModel((1,) * 6, (1,) * 6, (0,) * 6),) * 2),) * 3)
    for chooser in CHOOSERS:
        for z in (0.1, 0.5):
            choices = {repr(choose(model, z * model.full_cost, chooser)) for _ in range(3)}
            assert len(choices) == 1


numbers = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))


@st.composite
def models(draw: st.DrawFn) -> JoinModel:
    directions = []
    hops = draw(st.integers(1, 3))
    for _ in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 3), min_size=hops, max_size=hops))
        lists = [[draw(st.tuples(*[numbers] * size)) for _ in range(3)] for size in sizes]
        directions.append(
            DirectionModel(draw(numbers), draw(numbers), tuple(HopModel(*each) for each in lists))
        )
    return JoinModel(tuple(directions))


@settings(max_examples=300, deadline=None)
@given(models(), st.one_of(st.just(0.0), st.floats(1e-9, 1.0)))
def test_degenerate_models(model, z):
    """Zero rates, costs, shares and selectivities, single slices, single directions, tiny budgets."""
    check(model, z * model.full_cost)


def test_taking_away_dear_slices_leaves_no_rounding_behind():
    first = HopModel(cost=(1e-6,), partials=(189285.0,), share=(1,))
    last = HopModel(cost=(0, 0, 60508), partials=(0, 0, 0), share=(1, 1, 1))
    model = JoinModel((DirectionModel(3, 1, (first, last)),))
    assert choose(model, 0.0, "greedy_reverse").dear == (((), ()),)
    assert choose(model, 3e-6, "greedy_reverse").dear == (((0,), (0, 1)),)


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_free_work_is_done_without_a_budget(chooser):
    hop = HopModel(cost=(0, 1), partials=(0, 0), share=(1, 3))
    model = JoinModel((DirectionModel(1, 4, (hop,)),))
    choice = choose(model, 0.0, chooser)
    assert choice.dear == (((0,),),)


def test_lagrange_pays_for_no_slice_without_results():
    hop = HopModel(cost=(1, 1, 1), partials=(0, 0, 0), share=(0, 1, 0))
    rates_and_results = ((1, 1), (1, 0), (0, 1))
    model = JoinModel(tuple(DirectionModel(*each, (hop,)) for each in rates_and_results))
    assert choose(model, 5.0).dear == (((1,),), ((),), ((),))


def test_exhaustive_refuses_what_would_take_for_ever():
    with pytest.raises(ValueError, match="at most 10000000 are allowed. Use chooser lagrange"):
        choose(paper_instance(0, 6, 30), 1000.0, "exhaustive")


def test_unknown_names_are_refused():
    model = paper_instance(0, 2, 2)
    with pytest.raises(ValueError, match="no chooser 'gready'. Choosers: lagrange, greedy,"):
        choose(model, 1.0, "gready")
    with pytest.raises(ValueError, match="no metric 'best'. Metrics: best_output,"):
        choose(model, 1.0, "greedy", "best")
    with pytest.raises(ValueError, match="budget is not a number"):
        choose(model, float("nan"))


def test_work_is_worth_its_price_where_slices_differ_and_nothing_where_all_are_probed():
    def elasticity(share: tuple[float, ...], budget: float) -> float:
        hop = HopModel(cost=(10.0,) * len(share), partials=(0.0,) * len(share), share=share)
        model = JoinModel((DirectionModel(rate=1.0, results=100.0, hops=(hop,)),))
        choice = choose(model, budget)
        return price_of(model, budget) * choice.cost(model) / choice.output(model)

    # Where all slices are alike, the next unit of work brings as much as the others.
    assert elasticity((1.0, 1.0, 1.0, 1.0), 15) == pytest.approx(1.0)
    assert elasticity((8.0, 1.0, 1.0, 0.5), 15) == pytest.approx(1.5 / 8.5)
    assert elasticity((1.0, 1.0, 1.0, 1.0), 40) == 0.0
