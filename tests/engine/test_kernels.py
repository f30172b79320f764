"""Every kernel against a naive loop: the same pairs, and exactly the work that the loop counts."""

from __future__ import annotations

import math
import struct
from collections import Counter
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.sets import MOST_SUBSETS
from sparkshed.planner.physical import (
    Direction,
    Hop,
    JoinSpec,
    Kernel,
    OutputColumn,
    ScanKernel,
    SetKernel,
    StreamExec,
    VectorKernel,
    WeightedKernel,
)
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.predicate import Overlap, Predicate, Similarity, WeightedOverlap

many = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
WINDOW = 6
ARROW = {
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "array<double>": pa.list_(pa.float64()),
    "array<float>": pa.list_(pa.float32()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
}
Row = tuple[int, Any]


def columns(type_: str) -> tuple[Col, Col]:
    return Col(0, 1, type_, "a.v"), Col(1, 1, type_, "b.v")


def spec_of(type_: str, kernel: Kernel, checks: tuple[Predicate, ...], chunk: int = 1 << 18) -> JoinSpec:
    streams = tuple(
        StreamExec(name, ("ts", "v", "id"), ("timestamp", type_, "bigint"), 0) for name in ("a", "b")
    )
    directions = (Direction(0, (Hop(1, kernel, checks),)), Direction(1, (Hop(0, kernel, checks),)))
    output = (OutputColumn(0, 2, "i"), OutputColumn(1, 2, "k"))
    return JoinSpec(streams, ((0, WINDOW), (WINDOW, 0)), directions, 4, output, chunk)


def table(rows: list[tuple[int, Row]], type_: str) -> pa.Table:
    times = pa.array([time for _, (time, _) in rows], pa.int64()).cast(pa.timestamp("us", "UTC"))
    values = pa.array([value for _, (_, value) in rows], ARROW[type_])
    return pa.table([times, values, pa.array([number for number, _ in rows], pa.int64())], ["ts", "v", "id"])


def run(spec: JoinSpec, type_: str, rows: tuple[list[Row], list[Row]], rng: Random) -> Counter:
    """Join in random micro-batches."""
    count = rng.choice([1, 1, 3])
    batches: list[dict[int, list]] = [{} for _ in range(count)]
    for stream, own in enumerate(rows):
        for numbered in rng.sample(list(enumerate(own)), len(own)):
            batches[rng.randrange(count)].setdefault(stream, []).append(numbered)
    operator, found = JoinOperator(spec), Counter()
    for batch in batches:
        for out in operator.process({s: table(own, type_) for s, own in batch.items()}):
            assert out.num_rows <= spec.chunk
            found.update(zip(out.column(0).to_pylist(), out.column(1).to_pylist(), strict=True))
    return found


def in_time(rows: tuple[list[Row], list[Row]]) -> list[tuple[int, int]]:
    return [
        (i, k)
        for i, (time, _) in enumerate(rows[0])
        for k, (other, _) in enumerate(rows[1])
        if abs(time - other) <= WINDOW
    ]


def expected(rows: tuple[list[Row], list[Row]], holds: Any) -> Counter:
    return Counter((i, k) for i, k in in_time(rows) if holds(rows[0][i][1], rows[1][k][1]))


def work_of(spec: JoinSpec, type_: str, rows: tuple[list[Row], list[Row]]) -> int:
    """Entries touched when all rows of `a` meet all of `b`, which came before."""
    operator = JoinOperator(spec)
    for stream in (1, 0):
        for _ in operator.process({stream: table(list(enumerate(rows[stream])), type_)}):
            pass
    assert operator.statistics.directions[1].work == 0
    counters = operator.statistics.directions[0]
    assert counters.work == counters.comparisons + counters.results
    return counters.comparisons


# Sets -----------------------------------------------------------------------------------------

_ITEMS: dict[str, list[Any]] = {
    "array<int>": [None, 0, 1, 2, 3, 4, 5, -7],
    "array<string>": [None, "", "a", "b", "ä", "ab"],
    "array<double>": [None, 0.0, -0.0, math.nan, math.inf, 1.5, 2.5],
}


def a_set(rng: Random, type_: str) -> list[Any] | None:
    if rng.random() < 0.1:
        return None
    longest = rng.choice([0, 2, 4, 9])
    return [rng.choice(_ITEMS[type_]) for _ in range(rng.randint(0, longest))]


def item(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def shared(left: list[Any] | None, right: list[Any] | None) -> int:
    if left is None or right is None:
        return 0
    return len({item(v) for v in left} & {item(v) for v in right})


def a_row(rng: Random, make: Any) -> Row:
    return rng.randint(0, 20), make(rng)


def rows_of(rng: Random, make: Any) -> tuple[list[Row], list[Row]]:
    return tuple([a_row(rng, make) for _ in range(rng.choice([0, 1, 12, 12]))] for _ in range(2))  # type: ignore[return-value]


@many
@given(seed=st.integers(0, 1 << 40))
def test_sets_equal_the_naive_join(seed: int) -> None:
    rng = Random(seed)
    type_ = rng.choice(list(_ITEMS))
    least = rng.randint(1, 4)
    kernel = SetKernel(Overlap(*columns(type_), least), rng.randint(1, min(3, least)))
    rows = rows_of(rng, lambda r: a_set(r, type_))
    spec = spec_of(type_, kernel, (), rng.choice([1, 3, 1 << 18]))
    assert run(spec, type_, rows, rng) == expected(rows, lambda a, b: shared(a, b) >= least)


@many
@given(seed=st.integers(0, 1 << 40))
def test_sets_count_the_postings_they_read(seed: int) -> None:
    rng = Random(seed)
    least = rng.randint(1, 4)
    size = rng.randint(1, min(3, least))
    # Items get their codes in ascending order, because the first row that probes has them all.
    rows: tuple[list[Row], list[Row]] = ([(0, list(range(8)))], [])
    for own in rows:
        own += [
            (rng.randint(0, 9), rng.sample(range(8), rng.randint(0, 6))) for _ in range(rng.randint(0, 12))
        ]
    spec = spec_of("array<int>", SetKernel(Overlap(*columns("array<int>"), least), size), ())

    def subsets(items: list[int]) -> set[tuple[int, ...]]:
        if size == 1:
            return {(each,) for each in items}
        prefix = sorted(items)[: len(items) - least + size] if len(items) >= least else []
        return set(combinations(prefix, size))

    def reads(time: int, other: int) -> bool:
        return abs(time - other) <= WINDOW if size == 1 else _same_windows(time, other, rows[1])

    touched = sum(
        len(subsets(items) & subsets(others))
        for time, items in rows[0]
        for other, others in rows[1]
        if reads(time, other)
    )
    assert work_of(spec, "array<int>", rows) == touched


def _same_windows(time: int, other: int, probed: list[Row], basic: int = 4) -> bool:
    """Whether a probe touches the basic window that holds the other row."""
    window = [t for t, _ in probed if t // basic == other // basic]
    return min(window) <= time + WINDOW and max(window) >= time - WINDOW


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sets_with_very_many_items(size: int) -> None:
    """Some have more subsets than are worth combining."""
    rng = Random(3)

    def large(r: Random) -> list[int]:
        return r.sample(range(300), r.choice([2, 5, 60, 120]))

    rows = rows_of(rng, large)
    rows[0].append((5, list(range(300))))
    rows[1].append((6, list(range(200))))
    assert math.comb(200, 2) > MOST_SUBSETS
    spec = spec_of("array<int>", SetKernel(Overlap(*columns("array<int>"), 3), size), (), 7)
    assert run(spec, "array<int>", rows, rng) == expected(rows, lambda a, b: shared(a, b) >= 3)


def test_sets_refuse_subsets_that_cannot_find_them() -> None:
    spec = spec_of("array<int>", SetKernel(Overlap(*columns("array<int>"), 2), 3), ())
    with pytest.raises(ValueError, match="subsets of 3 items cannot find 2 shared items"):
        JoinOperator(spec)


# Weighted sets --------------------------------------------------------------------------------


def a_map(rng: Random) -> list[tuple[str, float | None]] | None:
    if rng.random() < 0.1:
        return None
    keys = rng.sample("abcdef", rng.randint(0, 4))
    return [(key, rng.choice([None, 0.0, 0.5, 1.0, -1.0, 2.0, math.nan, math.inf])) for key in keys]


def map_dot(left: Any, right: Any) -> float | None:
    if left is None or right is None:
        return None
    there, total = dict(right), 0.0
    for key, weight in left:
        if weight is not None and there.get(key) is not None:
            total += weight * there[key]
    return total


def weighted(least: float) -> tuple[Kernel, Predicate]:
    left, right = columns("map<string,double>")
    expr = Call(">=", (Call("map_dot", (left, right), "double"), Lit(least, "double", str(least))), "boolean")
    predicate = Predicate("dot(a, b)", expr)
    return WeightedKernel(WeightedOverlap(left, right, least), predicate), predicate


@many
@given(seed=st.integers(0, 1 << 40))
def test_weighted_sets_equal_the_naive_join(seed: int) -> None:
    rng = Random(seed)
    least = rng.choice([0.25, 1.0, 2.0])
    kernel, _ = weighted(least)
    rows = rows_of(rng, a_map)
    spec = spec_of("map<string,double>", kernel, (), rng.choice([1, 3, 1 << 18]))

    def holds(left: Any, right: Any) -> bool:
        total = map_dot(left, right)
        return total is not None and (math.isnan(total) or total >= least)

    assert run(spec, "map<string,double>", rows, rng) == expected(rows, holds)


@pytest.mark.parametrize("sparse", [0.0, 10.0])
def test_sums_of_weights_near_the_threshold_are_decided_exactly(
    sparse: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thresholds that are some pair's own sum, which another order of addition may miss."""
    monkeypatch.setattr("sparkshed.engine.postings._SPARSE", sparse)
    rng = Random(7)
    rows = tuple(
        [(0, [(key, rng.uniform(0.1, 1)) for key in rng.sample("abcdefgh", 6)]) for _ in range(25)]
        for _ in range(2)
    )
    for i in range(12):
        least = map_dot(rows[0][i][1], rows[1][i][1])
        assert least
        spec = spec_of("map<string,double>", weighted(least)[0], ())
        found = run(spec, "map<string,double>", rows, rng)  # type: ignore[arg-type]
        assert found == expected(rows, lambda a, b: map_dot(a, b) >= least)  # type: ignore[arg-type] # noqa: B023


@pytest.mark.parametrize("chunk", [5, 1 << 18])
def test_heavy_weights_do_not_reach_beyond_the_time_range(chunk: int) -> None:
    """The rounding of large sums is larger than the threshold, so a score of zero proves nothing."""
    rows = tuple([(time, [("p", 1e9), ("q", 1.0)]) for time in range(30)] for _ in range(2))
    spec = spec_of("map<string,double>", weighted(0.5)[0], (), chunk)
    found = run(spec, "map<string,double>", rows, Random(1))  # type: ignore[arg-type]
    assert found == Counter(in_time(rows))  # type: ignore[arg-type]


def test_sums_that_overflow_are_added_in_order() -> None:
    left = [("q", 1.0), ("s", 1.0), ("p", 1.0), ("r", 1.0), ("t", 1.0)]
    right = [("p", 1e308), ("q", -1e308), ("r", 1e308), ("s", -1e308), ("t", 5e307)]
    spec = spec_of("map<string,double>", weighted(0.5)[0], ())
    assert map_dot(left, right) == -math.inf
    assert run(spec, "map<string,double>", ([(1, left)], [(1, right)]), Random(1)) == Counter()


def test_weighted_sets_count_the_postings_they_read() -> None:
    kernel, _ = weighted(1.0)
    spec = spec_of("map<string,double>", kernel, ())
    rows = ([(5, [("a", 1.0), ("b", 1.0)])], [(5, [("a", 2.0)]), (5, [("a", 0.1), ("b", 0.1)]), (5, None)])
    assert work_of(spec, "map<string,double>", rows) == 3


# Vectors --------------------------------------------------------------------------------------


def single(value: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def unrolled(terms: list[float]) -> float:
    """Spark's sum: eight terms at a time, then one by one."""
    total, whole = 0.0, len(terms) // 8 * 8
    for start in range(0, whole, 8):
        block = terms[start]
        for term in terms[start + 1 : start + 8]:
            block += term
        total += block
    for term in terms[whole:]:
        total += term
    return total


def measured(measure: str, left: list | None, right: list | None) -> float | None:
    """Spark's value; raises ValueError where Spark fails."""
    if left is None or right is None:
        return None
    if len(left) != len(right):
        if measure in ("dot", "squared_distance"):
            return None
        raise ValueError
    if None in left or None in right:
        return None
    products = [a * b for a, b in zip(left, right, strict=True)]
    differences = [a - b for a, b in zip(left, right, strict=True)]
    squares = [d * d for d in differences]
    if measure == "dot":
        return sum(products, start=0.0) if not products else _in_order(products)
    if measure == "squared_distance":
        return _in_order(squares)
    if measure == "inner_product":
        return single(unrolled(products))
    if measure == "l2_distance":
        return single(math.sqrt(unrolled(squares)))
    scale = math.sqrt(unrolled([a * a for a in left]) * unrolled([b * b for b in right]))
    if scale == 0.0:
        return None
    return single(unrolled(products) / scale if math.isfinite(scale) else math.nan)


def _in_order(terms: list[float]) -> float:
    total = 0.0
    for term in terms:
        total += term
    return total


def vector_predicate(measure: str, op: str, threshold: float) -> tuple[Kernel, Predicate]:
    double = measure in ("dot", "squared_distance")
    left, right = columns("array<double>" if double else "array<float>")
    value: Expr = Call(measure, (left, right), "double" if double else "float")
    if not double:
        value = Call("cast", (value,), "double")
    expr = Call(op, (value, Lit(threshold, "double", str(threshold))), "boolean")
    predicate = Predicate(f"{measure} {op} {threshold}", expr)
    return VectorKernel(Similarity(measure, left, right, op, threshold), predicate), predicate


def compare(op: str, value: float | None, threshold: float) -> bool:
    if value is None:
        return False
    if math.isnan(value):
        return op in (">", ">=")
    if op in (">=", ">"):
        return value > threshold or (op == ">=" and value == threshold)
    return value < threshold or (op == "<=" and value == threshold)


def a_vector(rng: Random, dimension: int, odd: float) -> list[float | None] | None:
    if rng.random() < odd / 2:
        return None
    values: list[float | None] = [float(rng.randint(-2, 2)) for _ in range(dimension)]
    if dimension and rng.random() < odd:
        values[rng.randrange(dimension)] = rng.choice([None, math.nan, math.inf, -math.inf, 1e30, 1e-30])
    if rng.random() < odd / 2:
        values = [0.0] * dimension
    return values


MEASURES = ["inner_product", "cosine_similarity", "l2_distance", "dot", "squared_distance"]


@pytest.mark.parametrize("measure", MEASURES)
@many
@given(seed=st.integers(0, 1 << 40))
def test_vectors_equal_the_naive_join(measure: str, seed: int) -> None:
    rng = Random(seed)
    dimension = rng.choice([0, 1, 3, 8, 11])
    op = rng.choice([">=", ">", "<=", "<"])
    threshold = rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e-40])
    kernel, _ = vector_predicate(measure, op, threshold)
    odd = rng.choice([0.0, 0.3])
    lengths = [dimension, dimension, 2] if measure in ("dot", "squared_distance") and odd else [dimension]
    rows = rows_of(rng, lambda r: a_vector(r, r.choice(lengths), odd))
    type_ = "array<double>" if measure in ("dot", "squared_distance") else "array<float>"
    if type_ == "array<float>":
        rows = tuple(  # type: ignore[assignment]
            [(t, v if v is None else [x if x is None else single(x) for x in v]) for t, v in own]
            for own in rows
        )
    spec = spec_of(type_, kernel, (), rng.choice([1, 3, 1 << 18]))
    found = run(spec, type_, rows, rng)
    assert found == expected(rows, lambda a, b: compare(op, measured(measure, a, b), threshold))


@pytest.mark.parametrize("measure", MEASURES[:3])
def test_vectors_near_the_threshold_are_decided_exactly(measure: str) -> None:
    """Thresholds that are some pair's own value, where a rounded product would be a coin toss."""
    rng = Random(5)
    rows = tuple([(0, [single(rng.gauss(0, 1)) for _ in range(24)]) for _ in range(30)] for _ in range(2))
    for i in range(12):
        threshold = measured(measure, rows[0][i][1], rows[1][i][1])
        assert threshold is not None
        for op in (">=", ">", "<=", "<"):
            kernel, _ = vector_predicate(measure, op, threshold)
            found = run(spec_of("array<float>", kernel, ()), "array<float>", rows, rng)  # type: ignore[arg-type]
            assert found == expected(rows, lambda a, b: compare(op, measured(measure, a, b), threshold))  # type: ignore[arg-type] # noqa: B023


@pytest.mark.parametrize("measure", MEASURES[:3])
def test_vectors_of_different_length_fail_like_spark(measure: str) -> None:
    kernel, _ = vector_predicate(measure, ">=", 0.5)
    spec = spec_of("array<float>", kernel, ())
    rows = ([(5, [1.0, 2.0])], [(5, [1.0, 2.0]), (6, [1.0])])
    with pytest.raises(EvaluationError, match=r"\[VECTOR_DIMENSION_MISMATCH\].*but got 2 and 1"):
        run(spec, "array<float>", rows, Random(1))
    far = ([(5, [1.0, 2.0])], [(5, [1.0, 2.0]), (60, [1.0])])
    run(spec, "array<float>", far, Random(1))


@pytest.mark.parametrize("measure", MEASURES)
def test_vectors_count_every_row_in_the_time_range(measure: str) -> None:
    rng = Random(2)
    kernel, _ = vector_predicate(measure, ">=", 0.5)
    type_ = "array<double>" if measure in ("dot", "squared_distance") else "array<float>"
    rows = tuple([a_row(rng, lambda r: [float(r.randint(-2, 2))] * 3) for _ in range(40)] for _ in range(2))
    assert work_of(spec_of(type_, kernel, ()), type_, rows) == len(in_time(rows))  # type: ignore[arg-type]
    assert work_of(spec_of(type_, ScanKernel(), ()), type_, rows) == len(in_time(rows))  # type: ignore[arg-type]
