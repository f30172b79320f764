"""Kernels, estimates, groups: from the logical plan to the physical one."""

from __future__ import annotations

import pytest

from planning.build import SECOND, band, equal, general, plan, within
from sparkshed.planner import kernels
from sparkshed.planner.cost import plan_direction, window_rows
from sparkshed.planner.layout import MAX_GROUP_ROWS, Resources, choose_layout
from sparkshed.planner.physical import (
    BandKernel,
    Direction,
    EqualityKernel,
    Hop,
    JoinSpec,
    Layout,
    ScanKernel,
    StreamExec,
)
from sparkshed.planner.rules import RULES
from sparkshed.sql.bounds import TimeBound
from sparkshed.sql.options import Diffusion


def ruled(*predicates, **arguments):
    made = plan(*predicates, **arguments)
    for rule in RULES:
        made = rule(made)
    return made


def hop(made, joined, target):
    return kernels.hop(made, joined, target, window_rows(made, joined[0], target))[0]


def test_equality_comes_before_bands_and_scans():
    made = ruled(general(0, 1), band(0, 1, -1, 1, number=2), equal(0, 1), streams=2)
    chosen = hop(made, [0], 1)
    assert isinstance(chosen.kernel, EqualityKernel)
    assert {check.form is not None for check in chosen.checks} == {False, True}


def test_all_key_columns_make_one_key():
    made = ruled(equal(0, 1), equal(0, 1, 2), streams=2)
    chosen = hop(made, [0], 1)
    assert isinstance(chosen.kernel, EqualityKernel)
    assert len(chosen.kernel.keys) == 2
    assert chosen.checks == ()


def test_an_implied_equality_is_an_index_but_no_check():
    made = ruled(equal(0, 1), equal(1, 2), streams=3)
    chosen = hop(made, [0], 2)
    assert isinstance(chosen.kernel, EqualityKernel)
    assert chosen.checks == ()
    assert hop(made, [0, 2], 1).checks in ((), (made.predicates[1],))


def test_a_band_kernel_checks_its_own_band():
    exact = ruled(band(0, 1, -1, 1), streams=2)
    assert isinstance(hop(exact, [0], 1).kernel, BandKernel)
    assert hop(exact, [0], 1).checks == ()
    guide = ruled(band(0, 1, -1, 1, exact=False), streams=2)
    assert hop(guide, [0], 1) == Hop(1, BandKernel(guide.predicates), ())


def test_bands_on_one_column_make_one_range_and_the_most_selective_column_wins():
    made = ruled(
        band(0, 2, -1, 1),
        band(1, 2, -1, 1),
        band(1, 2, 0, None, number=2),
        streams=3,
        selectivity={(0, 2): 0.1},
    )
    chosen = hop(made, [0, 1], 2)
    assert chosen.kernel == BandKernel(made.predicates[:2])
    assert chosen.checks == made.predicates[2:]


def test_a_predicate_over_three_streams_waits_for_the_third():
    made = ruled(general(0, 1, 2), streams=3)
    assert hop(made, [0], 1) == Hop(1, ScanKernel(), ())
    assert hop(made, [0, 1], 2) == Hop(2, ScanKernel(), made.predicates)


def test_estimates_multiply():
    made = ruled(
        equal(0, 1), equal(1, 2), streams=3, rows=(6000, 12_000, 600), selectivity={(0, 1): 0.1, (1, 2): 0.5}
    )
    assert window_rows(made, 0, 1) == pytest.approx(40 * 12_000 / 600)
    _, (first, second) = plan_direction(made, 0)
    assert first.partials == pytest.approx(6000 * 800 * 0.1)
    assert second.partials == pytest.approx(6000 * 800 * 0.1 * 40 * 0.5)
    assert window_rows(ruled(equal(0, 1), streams=2, bounds=(TimeBound(0, 1, 0, ""),)), 0, 1) == 10_000


def test_the_number_of_groups_follows_rows_and_cores():
    def groups(rows, cores, **more):
        made = ruled(band(0, 1, -1, 1), streams=2, rows=(rows, rows), selectivity={(0, 1): 1e-4}, **more)
        return choose_layout(made, Resources(cores)).layout.groups

    assert groups(500, 8) == 1
    assert groups(20_000, 2) == 2
    assert groups(20_000, 8) == 8
    assert groups(20 * MAX_GROUP_ROWS, 8, seconds=1_000_000) == 40
    assert groups(20_000, 8, options={"diffuse": Diffusion("none")}) == 1
    assert groups(20_000, 8, options={"diffuse": Diffusion("atr", 3)}) == 3


def test_without_a_key_time_is_cut_into_even_shares():
    choice = choose_layout(
        ruled(band(0, 1, -1, 1), streams=2, seconds=6400, selectivity={(0, 1): 0.01}), Resources(4)
    )
    layout, replication = choice.layout, choice.replication
    assert layout.routing == "atr"
    assert layout.cuts == tuple(n * 1600 * SECOND for n in (1, 2, 3))
    assert replication == pytest.approx(1 + 0.5 * 40 / 1600)


@pytest.mark.parametrize(
    ("streams", "selectivity", "window", "routing"),
    [
        (2, 1e-6, 200, "atr"),
        (3, 1e-6, 200, "ctr"),
        (5, 1e-6, 200, "ctr"),
        (5, 1e-6, 20, "atr"),
        (5, 1e-2, 200, "atr"),
    ],
    ids=["two streams", "three", "five", "a small window", "many matches"],
)
def test_many_streams_with_large_windows_and_few_matches_travel(streams, selectivity, window, routing):
    made = ruled(
        *(band(i, i + 1, -1, 1) for i in range(streams - 1)),
        streams=streams,
        selectivity={(i, k): selectivity for i in range(streams) for k in range(i)},
        rows=(400_000,) * streams,
        bounds=within(streams, window),
    )
    choice = choose_layout(made, Resources(16))
    assert choice.layout.routing == routing
    loads = dict(choice.loads)
    assert set(loads) == {"none", "atr", "ctr"}
    assert min(loads, key=loads.__getitem__) == routing


def test_a_window_as_long_as_the_data_is_hashed():
    made = ruled(equal(0, 1), streams=2, seconds=30, selectivity={(0, 1): 0.001})
    choice = choose_layout(made, Resources(4))
    layout, replication = choice.layout, choice.replication
    assert (layout.routing, layout.buckets, replication) == ("hash", 4, 1.0)


def test_a_frequent_key_is_not_hashed():
    made = ruled(equal(0, 1), streams=2, seconds=6400, selectivity={(0, 1): 0.5}, top_share=0.9)
    layout = choose_layout(made, Resources(4)).layout
    assert layout.routing == "atr"


def test_a_frequent_key_in_a_long_window_is_cut_both_ways_or_in_time():
    made = ruled(equal(0, 1), streams=2, seconds=60, selectivity={(0, 1): 0.3}, top_share=0.5)
    layout = choose_layout(made, Resources(4)).layout
    assert layout.segments > 1


def test_layouts_check_themselves():
    with pytest.raises(ValueError, match="need a key"):
        Layout(0, buckets=2)
    with pytest.raises(ValueError, match="ascend"):
        Layout(0, cuts=(3, 2))


def test_specifications_check_themselves():
    stream = StreamExec("a", ("ts",), ("timestamp",), 0)
    with pytest.raises(ValueError, match="do not fit"):
        StreamExec("a", ("ts",), ("timestamp",), 1)
    bounds = ((0, 1), (1, 0))
    with pytest.raises(ValueError, match="one direction per stream"):
        JoinSpec((stream, stream), bounds, (), 1, ())
    wrong = (Direction(0, (Hop(0, ScanKernel()),)), Direction(1, (Hop(0, ScanKernel()),)))
    with pytest.raises(ValueError, match="must visit every other stream once"):
        JoinSpec((stream, stream), bounds, wrong, 1, ())
