"""The kernel with the lowest expected cost wins, and what is left is checked in the best order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planning.build import band, column, equal, general, plan
from sparkshed.planner.cost import plan_direction, window_rows, work
from sparkshed.planner.explain import explain_text
from sparkshed.planner.kernels import Option, hop
from sparkshed.planner.layout import Resources
from sparkshed.planner.physical import (
    BandKernel,
    EqualityKernel,
    ScanKernel,
    SetKernel,
    VectorKernel,
    WeightedKernel,
)
from sparkshed.planner.planner import plan_join
from sparkshed.planner.rules import RULES
from sparkshed.planner.statistics import IndexStatistics, PredicateStatistics
from sparkshed.sql.expr import Apply, Call, Lit, PythonPredicate
from sparkshed.sql.predicate import Overlap, Predicate, Similarity, WeightedOverlap


def measured(statistics: dict[Predicate, PredicateStatistics], **arguments):
    """A ruled plan of two streams with statistics of its conditions."""
    made = plan(*statistics, streams=2, **arguments)
    made = replace(made, statistics=replace(made.statistics, predicates=statistics))
    for rule in RULES:
        made = rule(made)
    return made


def options(made) -> tuple[Option, ...]:
    return hop(made, [0], 1, window_rows(made, 0, 1))[1]


def sets(least: int) -> Predicate:
    left, right = column(0, 1, "array<int>"), column(1, 1, "array<int>")
    overlap = Call("overlap", (left, right), "int")
    expr = Call(">=", (overlap, Lit(least, "int", str(least))), "boolean")
    return Predicate(f"overlap >= {least}", expr, Overlap(left, right, least))


def vectors() -> Predicate:
    left, right = column(0, 2, "array<float>"), column(1, 2, "array<float>")
    measure = Call("cosine_similarity", (left, right), "float")
    expr = Call(">=", (measure, Lit(0.9, "float", "0.9")), "boolean")
    return Predicate("cosine >= 0.9", expr, Similarity("cosine_similarity", left, right, ">=", 0.9))


def weighted() -> Predicate:
    left, right = column(0, 2, "map<string,double>"), column(1, 2, "map<string,double>")
    expr = Call(">=", (Call("map_dot", (left, right), "double"), Lit(1.0, "double", "1")), "boolean")
    return Predicate("dot >= 1", expr, WeightedOverlap(left, right, 1.0))


def python(name: str, **given: float) -> Predicate:
    apply = Apply(PythonPredicate(name, lambda *_: None, **given), (column(0), column(1)))
    return Predicate(f"{name}(a.c1, b.c1)", apply)


def stats(selectivity: float, *touched: float, **more) -> PredicateStatistics:
    return PredicateStatistics(selectivity, tuple(map(IndexStatistics, touched)), **more)


@pytest.mark.parametrize(
    ("keys", "values", "kernel"), [(0.5, 0.001, BandKernel), (0.001, 0.5, EqualityKernel)]
)
def test_the_more_selective_condition_has_the_index(keys: float, values: float, kernel: type) -> None:
    made = measured({equal(0, 1): stats(keys, keys), band(0, 1, -1, 1, number=2): stats(values, values)})
    chosen, *_ = options(made)
    assert isinstance(chosen.kernel, kernel)
    assert len(chosen.checks) == 1


def test_every_condition_with_an_index_is_an_option_and_so_is_the_scan() -> None:
    made = measured({equal(0, 1): stats(0.1, 0.1), band(0, 1, -1, 1, number=2): stats(0.2, 0.2)})
    found = options(made)
    assert [type(option.kernel) for option in found] == [EqualityKernel, BandKernel, ScanKernel]
    assert [option.cost for option in found] == sorted(option.cost for option in found)
    assert [len(option.checks) for option in found] == [1, 1, 2]
    assert [option.touched for option in found] == [0.1, 0.2, 1.0]


@pytest.mark.parametrize(
    ("indexes", "subset"),
    [
        ([IndexStatistics(0.25, 5, 1), IndexStatistics(0.02, 10, 2), IndexStatistics(0.0005, 10, 3)], 3),
        ([IndexStatistics(0.001, 3, 1), IndexStatistics(0.0005, 300, 2)], 1),
    ],
)
def test_the_size_of_subsets_weighs_lookups_against_postings(
    indexes: list[IndexStatistics], subset: int
) -> None:
    made = measured({sets(3): PredicateStatistics(0.0004, tuple(indexes), 5.0)}, rows=(30_000, 30_000))
    chosen, *_ = options(made)
    assert isinstance(chosen.kernel, SetKernel)
    assert chosen.kernel.subset == subset
    assert chosen.checks == ()


def test_vectors_are_multiplied_unless_a_better_index_leaves_few_of_them() -> None:
    alone = measured({vectors(): stats(0.01, width=128.0)})
    assert isinstance(options(alone)[0].kernel, VectorKernel)
    assert options(alone)[0].checks == ()
    keyed = measured({vectors(): stats(0.01, width=128.0), equal(0, 1): stats(0.001, 0.001)})
    assert isinstance(options(keyed)[0].kernel, EqualityKernel)
    assert options(keyed)[0].checks == (vectors(),)


def test_weighted_sets_are_looked_up() -> None:
    chosen, *_ = options(measured({weighted(): stats(0.01, 0.1, width=5.0)}))
    assert isinstance(chosen.kernel, WeightedKernel)
    assert chosen.checks == ()


def test_checks_are_ordered_by_cost_and_selectivity() -> None:
    slow, cheap = python("slow", cost=100.0, selectivity=0.5), python("cheap", cost=0.5, selectivity=0.5)
    strict = python("strict", cost=0.5, selectivity=0.01)
    made = measured({slow: stats(0.5), cheap: stats(0.5), strict: stats(0.01), equal(0, 1): stats(0.1, 0.1)})
    assert options(made)[0].checks == (strict, cheap, slow)


def test_a_costly_function_makes_the_scan_dearer() -> None:
    def scan(cost: float) -> Option:
        return options(measured({python("f", cost=cost): stats(0.1)}))[0]

    assert scan(50.0).cost > 5 * scan(2.0).cost
    costs = [work(measured({python("f", cost=cost): stats(0.1)}), 0) for cost in (2.0, 50.0)]
    assert costs[1] > costs[0]


def test_estimates_follow_the_chosen_kernel() -> None:
    made = measured({equal(0, 1): stats(0.25, 0.25), general(0, 1): stats(0.5)})
    direction, (estimate,) = plan_direction(made, 0)
    assert direction.hops[0].kernel == estimate.kernels[0].kernel
    assert estimate.probes == 10_000
    assert estimate.kernels[0].entries == pytest.approx(0.25 * estimate.window)


def test_no_kernel_touches_fewer_rows_than_match() -> None:
    """Conditions that hold together more often than chance has it: a sample told how often."""
    made = measured({equal(0, 1): stats(0.1, 0.1), equal(0, 1, 2): stats(0.1, 0.1)})
    made = replace(made, statistics=replace(made.statistics, fanouts=((50.0,), (50.0,))))
    _, (estimate,) = plan_direction(made, 0)
    assert estimate.kernels[0].entries == pytest.approx(50.0)
    assert estimate.partials == pytest.approx(500_000)


def test_explain_shows_what_every_kernel_costs() -> None:
    made = measured({equal(0, 1): stats(0.1, 0.1), sets(2): stats(0.001, 0.01, width=5.0)})
    planned = plan_join(made.block, made.statistics, Resources(2))
    text = explain_text([planned], "formatted")
    (first,) = [line for line in text.splitlines() if line.startswith("1 ") and "chosen" in line][:1]
    assert "  postings on a.c1, b.c1 by 1 shared item, overlap >= 2  " in first
    assert "Kernels from a, for one probe:" in text
    assert "equality on a.c1 = b.c1" in text
    assert "scan" in text
