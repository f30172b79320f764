"""Keep fractions beside grids of all fractions, and beside the conditions that only the best ones meet."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import numpy as np
import pytest

from sparkshed.planner.randomdrop import DropDirection, DropHop, keep_fractions


def instance(seed: int, streams: int) -> list[DropDirection]:
    draw = random.Random(f"{seed}/{streams}")
    directions = []
    for origin in range(streams):
        order = draw.sample([other for other in range(streams) if other != origin], streams - 1)
        hops = [DropHop(target, 10 ** draw.uniform(0, 3), 10 ** draw.uniform(-1, 1)) for target in order]
        directions.append(DropDirection(draw.uniform(10, 300), tuple(hops)))
    return directions


def work(directions: list[DropDirection], x, output_cost: float = 1.0):
    """C(x) by the formula, for numbers or arrays of them."""
    total = 0.0
    for origin, direction in enumerate(directions):
        entering = direction.rate * x[origin]
        for hop in direction.hops:
            total = total + entering * hop.cost * x[hop.target]
            entering = entering * hop.partials * x[hop.target]
        total = total + output_cost * entering
    return total


@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.9])
@pytest.mark.parametrize(("streams", "points"), [(2, 400), (3, 120)])
@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_grid_is_better(seed, streams, points, share):
    directions = instance(seed, streams)
    capacity = share * work(directions, [1.0] * streams)
    x = keep_fractions(directions, capacity)
    assert all(0 < each <= 1 for each in x)
    assert work(directions, x) == pytest.approx(capacity, rel=1e-9)
    # A grid around the answer, and one over everything.
    for low in (0.0, 0.9):
        axes = [np.linspace(low * each, min(1.0, each / low) if low else 1.0, points) for each in x]
        grid = np.meshgrid(*axes)
        fits = work(directions, grid) <= capacity
        best = float(np.where(fits, prod(grid), 0.0).max())
        assert prod(x) >= best * (1 - 1e-6)
    assert best >= 0.9 * prod(x)


@pytest.mark.parametrize("streams", [3, 4, 5, 6])
def test_dropped_streams_take_part_in_the_same_work(streams):
    """The condition of Karush, Kuhn and Tucker; streams kept whole take part in less."""
    for seed, share in product(range(20), (1e-8, 0.01, 0.2, 0.95)):
        directions = instance(seed, streams)
        capacity = share * work(directions, [1.0] * streams)
        x = keep_fractions(directions, capacity)
        assert work(directions, x) == pytest.approx(capacity, rel=1e-9)
        part = []
        for stream in range(streams):
            more = [each * (1.0 + 1e-6 * (other == stream)) for other, each in enumerate(x)]
            part.append((work(directions, more) - capacity) / (1e-6 * capacity))
        dropped = [p for p, each in zip(part, x, strict=True) if each < 1]
        assert max(part) <= min(dropped) + 1e-3


def test_two_streams_share_the_burden():
    """Only the product of the two matters; neither is preferred."""
    directions = instance(0, 2)
    capacity = 0.25 * work(directions, [1.0, 1.0])
    assert keep_fractions(directions, capacity) == pytest.approx((0.5, 0.5), rel=1e-6)


def test_a_cheap_stream_is_kept_whole():
    dear, cheap = 1000.0, 1.0
    directions = [
        DropDirection(100, (DropHop(1, dear, 0.1), DropHop(2, cheap, 0.1))),
        DropDirection(100, (DropHop(0, dear, 0.1), DropHop(2, cheap, 0.1))),
        DropDirection(1, (DropHop(0, cheap, 0.1), DropHop(1, cheap, 0.1))),
    ]
    x = keep_fractions(directions, 0.1 * work(directions, [1.0] * 3))
    assert x[2] == 1.0
    assert x[0] * x[1] == pytest.approx(0.1, rel=1e-3)


def test_enough_capacity_keeps_everything_and_none_keeps_nothing():
    directions = instance(0, 3)
    full = work(directions, [1.0] * 3)
    for capacity in (full * (1 + 1e-12), 10 * full, float("inf")):
        assert keep_fractions(directions, capacity) == (1.0,) * 3
    for capacity in (0.0, -1.0):
        assert keep_fractions(directions, capacity) == (0.0,) * 3


def test_a_capacity_just_below_the_full_work_drops_next_to_nothing():
    for streams in (2, 3, 6):
        directions = instance(3, streams)
        full = work(directions, [1.0] * streams)
        x = keep_fractions(directions, 0.999999 * full)
        assert work(directions, x) == pytest.approx(0.999999 * full, rel=1e-9)
        assert min(x) > 1 - 1e-5


def test_results_cost_what_they_are_said_to_cost():
    directions = instance(1, 3)
    capacity = 0.2 * work(directions, [1.0] * 3, output_cost=50.0)
    x = keep_fractions(directions, capacity, output_cost=50.0)
    assert work(directions, x, output_cost=50.0) == pytest.approx(capacity, rel=1e-9)


def test_streams_without_work_are_kept():
    silent = [DropDirection(0, (DropHop(1, 5, 1),)), DropDirection(0, (DropHop(0, 5, 1),))]
    assert keep_fractions(silent, 0.0) == (1.0, 1.0)
    hops = (DropHop(1, 10.0, 0.0), DropHop(2, 10.0, 0.0))
    only = [
        DropDirection(10, hops),
        DropDirection(0, (DropHop(0, 1, 1), DropHop(2, 1, 1))),
        DropDirection(0, (DropHop(0, 1, 1), DropHop(1, 1, 1))),
    ]
    x = keep_fractions(only, 50.0)
    assert x[2] == 1.0
    assert x[0] * x[1] == pytest.approx(0.5, rel=1e-6)


def test_answers_do_not_depend_on_the_run():
    directions = instance(2, 6)
    capacity = 0.1 * work(directions, [1.0] * 6)
    assert len({keep_fractions(directions, capacity) for _ in range(3)}) == 1


def test_directions_are_checked():
    with pytest.raises(ValueError, match="Direction 0 must probe every other stream once"):
        keep_fractions([DropDirection(1, (DropHop(0, 1, 1),)), DropDirection(1, (DropHop(0, 1, 1),))], 1.0)
    with pytest.raises(ValueError, match="cost must be finite and not negative, found -1"):
        DropHop(1, -1, 1)
    with pytest.raises(ValueError, match="rate must be finite and not negative, found nan"):
        DropDirection(float("nan"), ())
