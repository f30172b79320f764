"""Operators over whole arrays and maps, against Spark's formulas written as plain loops."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.test_lists import append, identity
from sparkshed.engine import matching, measures
from sparkshed.engine.arrays import Picks, Vector
from sparkshed.engine.codes import Codebook
from sparkshed.engine.collective import collective, common_below, kind_of
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import StreamExec
from sparkshed.sql.expr import COLLECTIVE, Apply, Call, Col, Lit, PythonPredicate

INF, NAN = math.inf, math.nan
FLOATS, DOUBLES = pa.list_(pa.float32()), pa.list_(pa.float64())
STRINGS, MAPS = pa.list_(pa.string()), pa.map_(pa.string(), pa.float64())
TYPES = {
    "overlap": ("array<string>", STRINGS),
    "inner_product": ("array<float>", FLOATS),
    "cosine_similarity": ("array<float>", FLOATS),
    "l2_distance": ("array<float>", FLOATS),
    "dot": ("array<double>", DOUBLES),
    "squared_distance": ("array<double>", DOUBLES),
    "map_dot": ("map<string,double>", MAPS),
}
RESULTS = {"overlap": np.int32, "dot": np.float64, "squared_distance": np.float64, "map_dot": np.float64}


class MismatchError(Exception):
    """Vectors of different lengths."""


def single(value: float) -> float:
    """Java's conversion from double to float."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(INF, value)


def unrolled(terms: list[float]) -> float:
    """Eight terms at a time, then one at a time."""
    total, whole = 0.0, len(terms) - len(terms) % 8
    for i in range(0, whole, 8):
        block = terms[i]
        for term in terms[i + 1 : i + 8]:
            block = block + term
        total += block
    for term in terms[whole:]:
        total += term
    return total


def vector_measure(op: str, left: list[Any], right: list[Any]) -> float | None:
    if len(left) != len(right):
        raise MismatchError
    if None in left or None in right:
        return None
    if op == "l2_distance":
        return single(math.sqrt(unrolled([(a - b) * (a - b) for a, b in zip(left, right, strict=True)])))
    dot = unrolled([a * b for a, b in zip(left, right, strict=True)])
    if op == "inner_product":
        return single(dot)
    squares = [unrolled([a * a for a in side]) for side in (left, right)]
    norms = math.sqrt(squares[0] * squares[1])
    return None if norms == 0.0 else single(dot / norms)


def naive(op: str, left: Any, right: Any) -> Any:
    """The operator on one pair; None is NULL."""
    if left is None or right is None:
        return None
    if op == "overlap":
        return len(set(map(identity, left)) & set(map(identity, right)))
    if op == "map_dot":
        total, there = 0.0, dict(right)
        for key, value in left:
            product = None if value is None or there.get(key) is None else value * there[key]
            total += 0.0 if product is None else product
        return total
    if op in ("dot", "squared_distance"):
        if len(left) != len(right) or None in left or None in right:
            return None
        total = 0.0
        for a, b in zip(left, right, strict=True):
            total += a * b if op == "dot" else (a - b) * (a - b)
        return total
    return vector_measure(op, left, right)


def store_of(values: list[Any], name: str, arrow: pa.DataType, codebook: Codebook) -> RowStore:
    store = RowStore(StreamExec("s", ("ts", "x"), ("timestamp", name), 0), [1], codebook)
    for begin in range(0, len(values), 3):
        append(store, pa.array(values[begin : begin + 3], arrow))
    return store


def columns(op: str) -> tuple[Col, Col]:
    return Col(0, 1, TYPES[op][0], "l.x"), Col(1, 1, TYPES[op][0], "r.x")


def pairs_of(op: str, left: list[Any], right: list[Any]) -> Candidates:
    """All pairs of the two columns."""
    codebook = Codebook()
    stores = [store_of(side, *TYPES[op], codebook) for side in (left, right)]
    partials = Partials(stores, {0: np.arange(len(left))[::-1]})
    picks = Picks(np.arange(len(left))[::-1], np.full(len(left), len(right)))
    return Candidates(stores, partials, 1, picks, np.tile(np.arange(len(right)), len(left)))


def result(op: str, left: list[Any], right: list[Any]) -> Vector:
    return Evaluator(True, Codebook()).evaluate(Call(op, columns(op), "double"), pairs_of(op, left, right))


def bits(vector: Vector) -> list[Any]:
    """Values such that equal ones have equal bits; NaN is NaN."""
    valid = [True] * len(vector.values) if vector.valid is None else vector.valid.tolist()
    return [repr(v) if ok else None for v, ok in zip(vector.values.tolist(), valid, strict=True)]


NUMBERS = (
    st.none() | st.sampled_from([0.0, -0.0, 1.0, -1.5, 3.0e38, 1e-40, INF, -INF, NAN]) | st.floats(width=32)
)
CHANCE = st.floats(width=32, allow_nan=False, allow_infinity=False)
VECTORS = st.integers(0, 3).flatmap(lambda n: st.lists(NUMBERS, min_size=n, max_size=n))
PLAIN = st.sampled_from([1, 7, 8, 9, 16, 17, 27]).flatmap(lambda n: st.lists(CHANCE, min_size=n, max_size=n))
ITEMS = st.none() | st.sampled_from(["", "a", "b", "c", "ä", "x" * 20])
VALUES = {
    "sets": st.lists(ITEMS, max_size=7) | st.lists(st.text(max_size=1), max_size=30),
    "maps": st.dictionaries(st.sampled_from("abcdefghij"), NUMBERS, max_size=10).map(
        lambda d: list(d.items())
    ),
    "vectors": VECTORS | PLAIN,
}


@pytest.fixture(params=["compare", "search"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to match lists, whatever is cheaper."""
    for cost in ("_COMPARE", "_MULTIPLY", "_CALL"):
        monkeypatch.setattr(matching, cost, 0.0 if request.param == "compare" else 1e9)


@pytest.mark.parametrize("op", COLLECTIVE)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_every_operator_is_bit_exact(op: str, data: st.DataObject) -> None:
    values = st.lists(st.none() | VALUES[kind_of(op)], min_size=1, max_size=5)
    left, right = data.draw(values), data.draw(values)
    try:
        expected = [naive(op, a, b) for a in left for b in right]
    except MismatchError:
        with pytest.raises(EvaluationError, match="VECTOR_DIMENSION_MISMATCH"):
            result(op, left, right)
        return
    found = result(op, left, right)
    assert found.values.dtype == RESULTS.get(op, np.float32)
    assert bits(found) == [None if v is None else repr(v) for v in expected]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("op", ["overlap", "map_dot"])
def test_many_pairs_of_uneven_lists(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_LEAST_PAIRS", 7)
    monkeypatch.setattr(matching, "_BLOCK_CODES", 100)
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in range(60)]
    sides: list[list[Any]] = []
    for _ in range(2):
        rows: list[Any] = [
            None,
            [],
            *(rng.permutation(words)[: rng.integers(0, 40)].tolist() for _ in range(20)),
        ]
        if op == "map_dot":
            rows = [r and [(k, float(rng.choice([0.1, -3.7, INF, 1e300]))) for k in r] for r in rows]
        sides.append(rows)
    expected = [naive(op, a, b) for a in sides[0] for b in sides[1]]
    assert bits(result(op, *sides)) == [None if v is None else repr(v) for v in expected]


@pytest.mark.parametrize(
    "op", ["inner_product", "cosine_similarity", "l2_distance", "dot", "squared_distance"]
)
@pytest.mark.parametrize("size", [1, 3, 8, 29, 128, 1000])
def test_long_vectors_are_bit_exact_across_blocks(
    op: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "_LEAST_PAIRS", 3)
    monkeypatch.setattr(measures, "_BLOCK", 5 * size)
    rng = np.random.default_rng(size)
    scale = 10.0 ** rng.integers(-3, 4, size)
    left = [list(map(single, rng.standard_normal(size) * scale)) for _ in range(4)]
    right = [list(map(single, rng.standard_normal(size) * scale)) for _ in range(5)]
    expected = [naive(op, a, b) for a in left for b in right]
    assert bits(result(op, left, right)) == list(map(repr, expected))


@pytest.mark.parametrize("op", ["inner_product", "cosine_similarity", "l2_distance"])
def test_vectors_of_different_lengths_are_refused(op: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        result(op, [None, [1.0, None]], [[2.0, 1.0], None, [1.0]])
    assert str(caught.value) == (
        f"[VECTOR_DIMENSION_MISMATCH] Vectors passed to `vector_{op}` must have the same dimension, "
        "but got 2 and 1."
    )


def test_empty_vectors() -> None:
    assert bits(result("inner_product", [[]], [[]])) == ["0.0"]
    assert bits(result("l2_distance", [[]], [[]])) == ["0.0"]
    assert bits(result("cosine_similarity", [[], None], [[], None])) == [None] * 4
    assert bits(result("dot", [[], [1.0]], [[], None])) == ["0.0", None, None, None]


def test_a_product_with_null_hides_even_nan() -> None:
    left, right = [[("a", None), ("b", 2.0)]], [[("b", 3.0), ("a", NAN)], [("c", NAN)], [], None]
    assert bits(result("map_dot", left, right)) == ["6.0", "0.0", "0.0", None]


@pytest.mark.usefixtures("way")
def test_of_equal_keys_the_first_counts() -> None:
    assert bits(result("map_dot", [[("b", 2.0)]], [[("a", 9.0), ("b", 3.0), ("b", 5.0)]])) == ["6.0"]


@pytest.mark.usefixtures("way")
@given(st.lists(st.tuples(*[st.sets(st.integers(0, 30), max_size=20)] * 2, st.integers(-1, 30)), max_size=30))
@settings(deadline=None)
def test_common_codes_up_to_a_limit(rows: list[tuple[set[int], set[int], int]]) -> None:
    codebook = Codebook()
    codebook.items(pa.array(range(31)), "bigint")
    arrow = pa.list_(pa.int64())
    left = store_of([list(a) for a, _, _ in rows], "array<bigint>", arrow, codebook).lists("sets", 1)
    right = store_of([list(b) for _, b, _ in rows], "array<bigint>", arrow, codebook).lists("sets", 1)
    numbers, last = np.arange(len(rows)), np.array([limit for _, _, limit in rows], np.int32)
    below, total = common_below(left, numbers, right, numbers, last)
    assert below.tolist() == [sum(x <= limit for x in a & b) for a, b, limit in rows]
    assert total.tolist() == [len(a & b) for a, b, _ in rows]


@pytest.mark.parametrize("op", COLLECTIVE)
def test_no_candidates(op: str) -> None:
    codebook = Codebook()
    lists = store_of([[]], *TYPES[op], codebook).lists(kind_of(op), 1)
    empty = store_of([], *TYPES[op], codebook).lists(kind_of(op), 1)
    none = np.zeros(0, np.int64)
    assert len(collective(op, lists, none, lists, none).values) == 0
    assert len(collective(op, empty, none, empty, none).values) == 0


def test_python_predicate_gets_columns_constants_and_computed_values() -> None:
    seen: list[Any] = []

    def accept(vector: pa.Array, size: np.ndarray, word: pa.Array) -> np.ndarray:
        seen.append((vector.to_pylist(), size.tolist(), word.to_pylist()))
        return size > 1

    left, right = columns("overlap")
    expr = Apply(
        PythonPredicate("accept", accept),
        (left, Call("overlap", (left, right), "int"), Lit("x", "string", "'x'")),
    )
    frame = pairs_of("overlap", [["a", "b"], None], [["b"], ["b", "a"]])
    assert bits(Evaluator(True, Codebook([expr])).evaluate(expr, frame)) == ["False", "True", None, None]
    assert seen == [([["a", "b"]] * 2, [1, 2], ["x", "x"])]
