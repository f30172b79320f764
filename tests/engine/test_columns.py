"""Words, nested keys and wide decimals in a whole join, and what they cost: no Python per row."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sparkshed.engine
from engine.build import lit
from engine.test_operator import equality, feed, rows, sides, two
from sparkshed.engine.operator import JoinOperator
from sparkshed.planner.physical import Kernel, ScanKernel
from sparkshed.sql.expr import Apply, Call, Expr, PythonPredicate
from sparkshed.sql.predicate import Predicate

ENGINE = Path(sparkshed.engine.__file__).parent
A, B = sides("string")


def scan(expr: Expr, type_: str = "string") -> JoinOperator:
    return JoinOperator(two(ScanKernel(), type_, checks=(Predicate("p", expr),)))


def both(left: Expr, right: Expr) -> Expr:
    return Call("and", (left, right), "boolean")


def all_pairs(left: list[Any], right: list[Any], test: Callable[[Any, Any], bool]) -> list[tuple[Any, Any]]:
    return sorted(((a, b) for a, b in itertools.product(left, right) if test(a, b)), key=repr)


@pytest.mark.parametrize("gridable", [True, False])
def test_words_keep_their_order_while_others_arrive(gridable: bool) -> None:
    """Rows, windows and constants of earlier batches are compared with words that change all ranks."""
    expr = both(Call("<", (A, B), "boolean"), Call("<", (B, lit("p", "string")), "boolean"))
    if not gridable:
        always = PythonPredicate("always", lambda a: np.ones(len(a), np.bool_))
        expr = both(expr, Apply(always, (A,)))
    op, left, right = scan(expr), list[str](), list[str]()
    found: list[tuple[Any, Any]] = []
    for batch in (["m", "o", "q"], ["a", "n"], ["", "m", "ma", "z"], ["ö", "A", "b"]):
        found += feed(op, {0: rows([0] * len(batch), batch), 1: rows([0] * len(batch), batch[::-1])})
        left, right = left + batch, right + batch
    assert sorted(found, key=repr) == all_pairs(left, right, lambda a, b: a < b < "p")


def test_words_outlive_the_codebook_that_ranked_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkshed.engine.holding._SMALL_CODEBOOK", 3)
    monkeypatch.setattr("sparkshed.engine.holding._STALE", 0)
    op = scan(both(Call("<", (A, B), "boolean"), Call(">", (A, lit("b", "string")), "boolean")))
    first, second = ["d", "c", "x", "y"], ["z", "a", "cc"]
    feed(op, {0: rows([0] * 4, first)})
    op.expire(0)
    assert len(op._codebook) == 1
    expected = all_pairs(first, second, lambda a, b: "b" < a < b)
    assert feed(op, {1: rows([0] * 3, second)}) == expected


def test_python_predicates_get_computed_words() -> None:
    seen: list[Any] = []

    def keep(word: pa.Array) -> np.ndarray:
        seen.extend(word.to_pylist())
        return np.ones(len(word), np.bool_)

    larger = Call("coalesce", (Call("greatest", (A, B), "string"), lit("none", "string")), "string")
    op = scan(Apply(PythonPredicate("keep", keep), (larger,)))
    feed(op, {0: rows([0, 0], ["m", None]), 1: rows([0], ["k"])})
    feed(op, {0: rows([0], ["a"]), 1: rows([0], [None], pa.string())})
    assert sorted(seen) == ["a", "k", "k", "m", "m", "none"]


def test_words_that_only_a_python_predicate_reads_stay_in_arrow() -> None:
    equal = PythonPredicate("equal", lambda a, b: np.asarray(a.to_pylist()) == np.asarray(b.to_pylist()))
    op = scan(Apply(equal, (A, B)))
    assert feed(op, {0: rows([0, 0], ["m", "n"]), 1: rows([0], ["n"])}) == [("n", "n")]
    assert len(op._codebook) == 0


def test_nested_keys_are_compared_by_a_check_too() -> None:
    type_ = "struct<i:bigint,s:array<string>>"
    op = scan(Call("<=>", sides(type_), "boolean"), type_)
    values = [{"i": 1, "s": ["a", None]}, {"i": 1, "s": ["a"]}, {"i": None, "s": None}, None]
    found = feed(op, {0: rows([0] * 4, values), 1: rows([0] * 4, values[::-1])})
    assert found == sorted(((value, value) for value in values), key=repr)


def wide_decimals(numbers: np.ndarray) -> pa.Array:
    return pa.array([int(number) * 10**20 for number in numbers], pa.decimal128(30, 0))


def structs(numbers: np.ndarray) -> pa.Array:
    names = pa.array([f"name {number}" for number in numbers])
    offsets = pa.array(np.arange(len(numbers) + 1), pa.int32())
    parts = [pa.ListArray.from_arrays(offsets, names), pa.array(numbers)]
    return pa.StructArray.from_arrays(parts, ["s", "i"])


W = "decimal(30,0)"
KEYED: dict[str, Callable[[np.ndarray], pa.Array]] = {
    "string": lambda n: pa.array([f"key {number}" for number in n]),
    "struct<s:array<string>,i:bigint>": structs,
    W: wide_decimals,
    "double": lambda n: pa.array(n / 7),
}


def cast(operand: Expr, type_: str) -> Call:
    return Call("cast", (operand,), type_)


DIFFERENCE = Call("-", sides(W), "decimal(31,0)")
DOUBLED = Call("*", (DIFFERENCE, lit(2, "decimal(1,0)")), "decimal(33,0)")
COMPARED: dict[str, tuple[str, Expr, Expr]] = {
    "words": ("string", Call("least", (A, B), "string"), lit("key 1", "string")),
    "decimals": (W, DOUBLED, lit(1, "decimal(33,0)")),
    "doubles": (W, cast(DIFFERENCE, "double"), lit(-1.0, "double")),
}


def lines(kernel: Kernel, type_: str, checks: tuple[Predicate, ...], array: pa.Array) -> int:
    """Lines of the engine that run to join an array with itself, in several batches."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if Path(frame.f_code.co_filename).parent != ENGINE:
            return None
        count += event == "line"
        return trace

    op = JoinOperator(two(kernel, type_, checks=checks, output=()))
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for part in range(4):
            size = len(array) // 4
            some = rows([0] * size, array.slice(part * size, size))
            for _ in op.process({0: some, 1: some}):
                pass
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("type_", KEYED)
def test_keys_are_not_touched_one_by_one(type_: str) -> None:
    few, many = (lines(equality(type_), type_, (), KEYED[type_](np.arange(n))) for n in (1000, 8000))
    assert 0 < many - 200 <= few


@pytest.mark.parametrize("case", COMPARED)
def test_pairs_are_not_touched_one_by_one(case: str) -> None:
    type_, left, right = COMPARED[case]
    check = Predicate("p", Call("<", (left, right), "boolean"))
    few, many = (lines(ScanKernel(), type_, (check,), KEYED[type_](np.arange(n))) for n in (40, 320))
    assert 0 < many - 200 <= few


def test_no_column_becomes_python_objects() -> None:
    """What would make a Python object of each value; constants and counts are few."""
    for path in ENGINE.glob("*.py"):
        names = {
            node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
        }
        refused = {
            "to_pylist",
            "to_pandas",
            "as_py",
            "vectorize",
            "frompyfunc",
            "apply_along_axis",
            "object_",
        }
        assert not names & refused, path.name
