"""Each rule alone, and the order they stand in."""

from __future__ import annotations

from itertools import permutations

import pytest

from planning.build import SECOND, band, equal, general, plan, within
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.keys import common_keys
from sparkshed.planner.rules import RULES
from sparkshed.planner.rules.check_runnable import check_runnable
from sparkshed.planner.rules.choose_basic import MIN_ROWS, choose_basic
from sparkshed.planner.rules.choose_orders import choose_orders
from sparkshed.planner.rules.close_bounds import close_bounds
from sparkshed.planner.rules.imply_equalities import imply_equalities
from sparkshed.planner.rules.merge_bands import merge_bands
from sparkshed.sql.bounds import TimeBound
from sparkshed.sql.errors import BoundError, HintError, PlanError
from sparkshed.sql.options import Diffusion
from sparkshed.sql.predicate import Band


def test_rules_are_named_like_their_files():
    for rule in RULES:
        assert rule.__module__ == f"sparkshed.planner.rules.{rule.__name__}"


def test_close_bounds_fills_in_what_is_implied():
    bounds = (TimeBound(0, 1, 5, ""), TimeBound(1, 0, 2, ""), TimeBound(1, 2, 3, ""), TimeBound(2, 1, 1, ""))
    closed = close_bounds(plan(streams=3, bounds=bounds)).closed
    assert closed.at == ((0, 5, 8), (2, 0, 3), (3, 1, 0))
    assert [closed.window(s) for s in range(3)] == [3, 5, 8]


def test_close_bounds_marks_contradictions_as_empty():
    closed = close_bounds(plan(streams=2, bounds=(TimeBound(0, 1, -5, ""), TimeBound(1, 0, 2, "")))).closed
    assert closed.empty
    assert closed.at == ((0, -1), (-1, 0))


def test_imply_equalities_closes_chains():
    after = imply_equalities(plan(equal(0, 1), equal(1, 2), equal(2, 3), streams=4))
    assert [i.predicate.text for i in after.implied] == ["a.c1 = c.c1", "a.c1 = d.c1", "b.c1 = d.c1"]


def test_imply_equalities_leaves_null_safe_ones_alone():
    assert imply_equalities(plan(equal(0, 1, null_safe=True), equal(1, 2), streams=3)).implied == ()


def test_merge_bands_joins_both_ends():
    after = merge_bands(plan(band(0, 1, None, 3), band(0, 1, -2, None), general(0, 1), streams=2))
    assert len(after.predicates) == 2
    form = after.predicates[0].form
    assert isinstance(form, Band)
    assert (form.low, form.high) == (-2, 3)


def test_merge_bands_turns_the_other_way_round():
    after = merge_bands(plan(band(0, 1, None, 3), band(1, 0, None, 2), streams=2))
    form = after.predicates[0].form
    assert isinstance(form, Band)
    assert (form.left.stream, form.low, form.high) == (0, -2, 3)


def test_merge_bands_keeps_exact_and_guiding_ones_apart():
    assert (
        len(merge_bands(plan(band(0, 1, None, 3), band(0, 1, -2, None, exact=False), streams=2)).predicates)
        == 2
    )


def test_choose_basic():
    dense = close_bounds(plan(streams=2, rows=(1_000_000, 1_000_000), seconds=1000))
    assert choose_basic(dense).basic == 2 * SECOND
    sparse = choose_basic(close_bounds(plan(streams=2, rows=(1000, 100), seconds=1000)))
    assert sparse.basic == MIN_ROWS * SECOND
    fixed = close_bounds(plan(streams=2, options={"basic": 7}))
    assert choose_basic(fixed).basic == 7


def test_orders_take_no_cross_product_while_a_link_remains():
    chain = [equal(0, 1), equal(1, 2), equal(2, 3)]
    graph = JoinGraph(4, chain)
    assert set(graph.orders(0)) == {(1, 2, 3)}
    assert set(graph.orders(1)) == {(0, 2, 3), (2, 0, 3), (2, 3, 0)}
    assert set(JoinGraph(3, []).orders(0)) == {(1, 2), (2, 1)}
    assert set(JoinGraph(4, [general(0, 1, 2, 3)]).orders(2)) == set(permutations((0, 1, 3)))
    island = JoinGraph(4, [equal(0, 1), equal(2, 3)])
    assert set(island.orders(0)) == {(1, 2, 3), (1, 3, 2)}


def test_choose_orders_takes_the_lowest_selectivity_first():
    sigma = {(0, 1): 0.5, (0, 2): 0.1, (1, 2): 0.01}
    after = choose_orders(plan(equal(0, 1), equal(0, 2), equal(1, 2), streams=3, selectivity=sigma))
    assert after.orders == ((2, 1), (2, 0), (1, 0))


def test_choose_orders_stays_within_the_graph():
    after = choose_orders(plan(equal(0, 1), equal(1, 2), streams=3, selectivity={(0, 1): 0.9, (1, 2): 0.001}))
    assert after.orders[0] == (1, 2)


def test_fixed_orders_win():
    options = {"order": (("a", ("c", "b")), ("C", ("A", "B")))}
    sigma = {(0, 1): 0.1, (0, 2): 0.9, (1, 2): 0.2}
    after = choose_orders(
        plan(equal(0, 1), equal(0, 2), equal(1, 2), streams=3, selectivity=sigma, options=options)
    )
    assert after.orders == ((2, 1), (0, 2), (0, 1))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ((("x", ("a", "b")),), "names `x`, which is no relation"),
        ((("a", ("b",)),), "for `a` must name every other relation once"),
        ((("a", ("b", "c")), ("a", ("c", "b"))), "two orders for `a`"),
    ],
)
def test_wrong_orders(order, message):
    with pytest.raises(HintError, match=message):
        choose_orders(plan(equal(0, 1), equal(1, 2), streams=3, options={"order": order}))


def test_check_runnable_refuses_null_times_that_would_join():
    with pytest.raises(BoundError, match="`a` has 3 rows without a.ts"):
        check_runnable(plan(streams=2, strict_time=True, null_times=3))
    unchanged = plan(streams=2, strict_time=False, null_times=3)
    assert check_runnable(unchanged) is unchanged


def test_check_runnable_refuses_hash_without_a_key():
    options = {"diffuse": Diffusion("hash")}
    with pytest.raises(PlanError, match="needs one key that is equal in all streams"):
        check_runnable(plan(equal(0, 1), band(1, 2, 0, 1), streams=3, options=options))
    good = imply_equalities(plan(equal(0, 1), equal(1, 2), streams=3, options=options))
    assert check_runnable(good) is good


def test_common_keys_need_all_streams():
    assert common_keys(imply_equalities(plan(equal(0, 1), equal(1, 2), streams=3))) == (1, 1, 1)
    assert common_keys(imply_equalities(plan(equal(0, 1), equal(1, 2, 2), streams=3))) is None
    assert common_keys(plan(equal(0, 1, null_safe=True), streams=2)) is None


def test_windows_of_the_papers():
    closed = close_bounds(plan(streams=4, bounds=within(4, 20))).closed
    assert all(closed.window(s) == 20 * SECOND for s in range(4))
