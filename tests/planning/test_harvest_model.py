"""Cost and output of harvested joins."""

from __future__ import annotations

from itertools import chain

import pytest

from planning.harvests import paper_instance
from sparkshed.planner.harvest import Choice, DirectionModel, HopModel, JoinModel, paper_model

HOP = HopModel(cost=(10, 20), partials=(1, 2), share=(3, 1))
LAST = HopModel(cost=(5, 5, 5), partials=(0, 0, 0), share=(0, 1, 1))
MODEL = JoinModel((DirectionModel(2.0, 8.0, (HOP, LAST)), DirectionModel(1.0, 1.0, (HOP,))))


def test_a_hop_is_multiplied_by_the_partial_results_of_the_one_before():
    setting = (((1,), (0, 2)), ((),))
    assert MODEL.cost(setting) == 2.0 * (20 + 2 * 10)
    assert MODEL.output(setting) == 2.0 * 8.0 * 0.25 * 0.5


def test_everything():
    assert MODEL.full_setting == (((0, 1), (0, 1, 2)), ((0, 1),))
    assert MODEL.full_cost == 2.0 * (30 + 3 * 15) + 30
    assert MODEL.full_output == 17.0


@pytest.mark.parametrize("half", [((0, 1), ()), ((), (0, 1)), ((), ())])
def test_a_hop_without_slices_makes_a_direction_free_and_useless(half):
    setting = (half, ((),))
    assert MODEL.cost(setting) == 0.0
    assert MODEL.output(setting) == 0.0


def test_unknown_shares_are_equal_ones():
    assert HopModel((1, 1), (0, 0), (0, 0)).share == (0.5, 0.5)


def test_a_choice_expects_the_mean():
    off = (((), ()), ((),))
    choice = Choice(MODEL.full_setting, off, 0.25)
    assert choice.cost(MODEL) == MODEL.full_cost / 4
    assert choice.output(MODEL) == MODEL.full_output / 4


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (((1,), (1, 1), (1,)), "one value per slice, found 1, 2 and 1 values"),
        (((), (), ()), "one value per slice"),
        (((-1,), (1,), (1,)), "cost must be finite and not negative"),
        (((1,), (float("nan"),), (1,)), "partials must be finite"),
        (((1,), (1,), (float("inf"),)), "share must be finite"),
    ],
)
def test_hops_check_themselves(values, message):
    with pytest.raises(ValueError, match=message):
        HopModel(*values)


def test_directions_and_joins_check_themselves():
    with pytest.raises(ValueError, match="rate must be finite"):
        DirectionModel(-1.0, 1.0, (HOP,))
    with pytest.raises(ValueError, match="at least one hop"):
        DirectionModel(1.0, 1.0, ())
    with pytest.raises(ValueError, match="at least one direction"):
        JoinModel(())


def test_paper_model_is_the_formula_of_the_paper():
    rates, windows = [300.0, 100.0, 150.0], [10.0, 10.0, 20.0]
    selectivity = [[0, 0.01, 0.02], [0.03, 0, 0.04], [0.05, 0.06, 0]]
    scores = [[[1, 2, 3, 4, 0]] * 3] * 3
    orders = [[1, 2], [2, 0], [1, 0]]
    model = paper_model(rates, windows, selectivity, scores, orders)
    counts = [[2, 3], [1, 5], [0, 0]]
    setting = tuple(tuple(tuple(sorted([3, 2, 1, 0, 4][:c])) for c in row) for row in counts)
    cost = output = 0.0
    for i, order in enumerate(orders):
        partials, used = 1.0, 0.0
        for target, count in zip(order, counts[i], strict=True):
            size = rates[target] * windows[target]
            used += count / 5 * size * partials
            partials *= sum([4, 3, 2, 1, 0][:count]) / 10 * selectivity[i][target] * size
        cost += rates[i] * used
        output += rates[i] * partials
    assert model.cost(setting) == pytest.approx(cost)
    assert model.output(setting) == pytest.approx(output)


def test_results_can_be_counted_as_work():
    bare, counted = (paper_instance(1, 3, 5, include_output) for include_output in (False, True))
    assert counted.full_cost == pytest.approx(bare.full_cost + bare.full_output)
    assert counted.full_output == bare.full_output
    first = chain.from_iterable(d.hops[:-1] for d in counted.directions)
    assert list(first) == list(chain.from_iterable(d.hops[:-1] for d in bare.directions))
