"""The closed matrix of time bounds, against brute force."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkshed.sql.bounds import BoundMatrix, TimeBound, duration_text

SPAN = 8


@st.composite
def bounded(draw: st.DrawFn) -> tuple[int, list[TimeBound]]:
    streams = draw(st.integers(2, 4))
    pairs = st.tuples(st.integers(0, streams - 1), st.integers(0, streams - 1)).filter(lambda p: p[0] != p[1])
    bounds = draw(st.lists(st.tuples(pairs, st.integers(-3, 3)), max_size=6))
    return streams, [TimeBound(later, earlier, micros, "") for (later, earlier), micros in bounds]


def satisfying(streams: int, bounds: list[TimeBound]) -> list[tuple[int, ...]]:
    """All times with the first stream at zero that keep the bounds, within a span that is wide enough."""
    rest = itertools.product(range(-SPAN * 2, SPAN * 2 + 1), repeat=streams - 1)
    times = [(0, *others) for others in rest]
    return [t for t in times if all(t[b.later] - t[b.earlier] <= b.micros for b in bounds)]


@given(bounded())
def test_no_times_that_keep_the_bounds_break_the_matrix(case: tuple[int, list[TimeBound]]) -> None:
    streams, bounds = case
    matrix = BoundMatrix.close(streams, bounds)
    for times in satisfying(min(streams, 3), [b for b in bounds if max(b.later, b.earlier) < 3])[:2000]:
        times = (*times, *[0] * (streams - len(times)))
        if any(times[b.later] - times[b.earlier] > b.micros for b in bounds):
            continue
        assert not matrix.empty
        for i, k in itertools.permutations(range(streams), 2):
            bound = matrix.at[i][k]
            assert bound is None or times[i] - times[k] <= bound


@given(bounded().filter(lambda case: case[0] <= 3))
def test_finite_bounds_are_reached(case: tuple[int, list[TimeBound]]) -> None:
    """The matrix is tight: for every finite bound there are times that reach it."""
    streams, bounds = case
    matrix = BoundMatrix.close(streams, bounds)
    times = satisfying(streams, bounds)
    assert matrix.empty == (not times)
    for i, k in itertools.permutations(range(streams), 2):
        bound = matrix.at[i][k]
        if not matrix.empty and bound is not None:
            assert max(t[i] - t[k] for t in times) == bound


@given(bounded())
def test_closing_twice_changes_nothing(case: tuple[int, list[TimeBound]]) -> None:
    streams, bounds = case
    matrix = BoundMatrix.close(streams, bounds)
    if matrix.empty:
        return
    again = [
        TimeBound(i, k, bound, "")
        for i, row in enumerate(matrix.at)
        for k, bound in enumerate(row)
        if bound is not None
    ]
    assert BoundMatrix.close(streams, again) == matrix


def test_contradiction() -> None:
    matrix = BoundMatrix.close(3, [TimeBound(0, 1, -1, ""), TimeBound(1, 0, 0, "")])
    assert matrix.empty
    assert matrix.at[0] == (0, -1, -1)


def test_windows() -> None:
    matrix = BoundMatrix.close(2, [TimeBound(0, 1, 5, ""), TimeBound(1, 0, -2, "")])
    assert (matrix.window(0), matrix.window(1)) == (0, 5)
    assert BoundMatrix.close(2, [TimeBound(0, 1, 5, "")]).window(0) is None


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (None, "unbounded"),
        (0, "0 s"),
        (-1, "-1 µs"),
        (2_500, "2.5 ms"),
        (999_999, "999.999 ms"),
        (4_999_999, "4.999999 s"),
        (-90_000_000, "-1 min 30 s"),
        (93_600_000_000, "1 d 2 h"),
    ],
)
def test_duration_text(micros: int | None, text: str) -> None:
    assert duration_text(micros) == text
