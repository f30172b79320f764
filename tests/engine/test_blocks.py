"""Evaluation on a grid agrees with evaluation pair by pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.build import lit
from engine.test_evaluate import vector
from sparkshed.engine.arrays import Ints, Vector
from sparkshed.engine.blocks import GridEvaluator, GridFrame, is_gridable
from sparkshed.engine.codes import Codebook
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.evaluate import Evaluator
from sparkshed.engine.programs import Program
from sparkshed.sql.expr import Apply, Call, Col, Expr, Lit, PythonPredicate

DAY_TIME = "interval day to second"
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "tinyint": [0, 1, -128, 127, None],
    "int": [0, 1, -1, 7, -(1 << 31), (1 << 31) - 1, None],
    "bigint": [0, 2, -3, 1 << 40, -(1 << 63), (1 << 63) - 1, None],
    "float": [0.0, -0.0, 1.5, -2.0, 3.0e38, math.nan, math.inf, -math.inf, None],
    "double": [0.0, -0.0, 1.5, -2.0, 1e308, math.nan, math.inf, -math.inf, None],
    "date": [0, 1, 20_000, None],
    "timestamp": [0, 1, (1 << 63) - 1, None],
    DAY_TIME: [0, -5, None],
    "decimal(10,2)": [0, 1, None],
    "string": ["", "a", "ab", "ä", "a\0", None],
    "decimal(30,2)": [0, 1, -(10**25), 10**25 + 1, None],
}
NUMBERS = ("tinyint", "int", "bigint", "float", "double")
#: Columns 0 … of every stream, one for each type.
COLUMNS = list(VALUES)


class Pairs:
    """All pairs of a grid, one after the other."""

    def __init__(self, columns: dict[tuple[int, int], Vector], size: int) -> None:
        self._columns = columns
        self.size = size

    def column(self, column: Col) -> Vector:
        return self._columns[column.stream, column.column]

    def select(self, rows: Ints) -> Pairs:
        return Pairs({key: vector.take(rows) for key, vector in self._columns.items()}, len(rows))


def column(type_: str) -> st.SearchStrategy[Expr]:
    return st.builds(lambda stream: Col(stream, COLUMNS.index(type_), type_, "c"), st.integers(0, 2))


def expressions(type_: str, depth: int) -> st.SearchStrategy[Expr]:
    """Random expressions of a type."""
    leaf = column(type_) | st.sampled_from(VALUES[type_]).map(lambda value: lit(value, type_))
    if depth == 0:
        return column(type_)
    same = expressions(type_, depth - 1)
    truth = st.deferred(lambda: expressions("boolean", depth - 1))
    some = [leaf, call("coalesce", type_, same, same), call("case", type_, truth, same, truth, same, same)]
    some += [
        call("case", type_, truth, same),
        call("greatest", type_, same, same),
        call("least", type_, same, same),
    ]
    if type_ == "boolean":
        return st.one_of(some[:4] + booleans(depth))
    if type_ in NUMBERS:
        some += [call(op, type_, same, same) for op in ("+", "-", "*", "%")]
        some += [call(op, type_, same) for op in ("neg", "abs")]
        some += [call("%", type_, same, leaf)]
        narrower = NUMBERS[: NUMBERS.index(type_)]
        if narrower:
            others = st.sampled_from(narrower).flatmap(lambda t: expressions(t, depth - 1))
            some += [call("cast", type_, others)]
    if type_ == "double":
        some += [call("/", type_, same, same), call("/", type_, same, leaf)]
    if type_ == DAY_TIME:
        some += [call("-", type_, *[expressions("timestamp", depth - 1)] * 2), call("neg", type_, same)]
    return st.one_of(some)


def booleans(depth: int) -> list[st.SearchStrategy[Expr]]:
    truth = st.deferred(lambda: expressions("boolean", depth - 1))
    anything = st.sampled_from(COLUMNS)
    compared = st.tuples(st.sampled_from(["=", "<=>", "<", "<=", ">", ">="]), anything).flatmap(
        lambda pick: call(pick[0], "boolean", *[expressions(pick[1], depth - 1)] * 2)
    )
    return [
        compared,
        compared,
        call("and", "boolean", truth, truth, truth),
        call("or", "boolean", truth, truth),
        call("not", "boolean", truth),
        anything.flatmap(lambda t: call("isnull", "boolean", expressions(t, depth - 1))),
        anything.flatmap(lambda t: call("in", "boolean", *[expressions(t, depth - 1)] * 3)),
    ]


def call(op: str, type_: str, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.tuples(*args).map(lambda found: Call(op, found, type_))


def frames(seed: int, down: int, across: int, codebook: Codebook) -> tuple[GridFrame, Pairs]:
    """Random rows of streams 0 and 1 down and of stream 2 across, as a grid and as pairs."""
    rng = np.random.default_rng(seed)
    sides: dict[tuple[int, int], Vector] = {}
    for stream, size in ((0, down), (1, down), (2, across)):
        for number, type_ in enumerate(COLUMNS):
            options = VALUES[type_] if rng.random() < 0.7 else [v for v in VALUES[type_] if v is not None]
            values = [options[i] for i in rng.integers(0, len(options), size)]
            sides[stream, number] = vector(values, type_, codebook)
    picks, rows = np.repeat(np.arange(down), across), np.tile(np.arange(across), down)

    def side(column: Col) -> Vector:
        return Evaluator(True, codebook).ready(sides[column.stream, column.column], column.type)

    expanded = {key: found.take(rows if key[0] == 2 else picks) for key, found in sides.items()}
    return GridFrame(2, (down, across), side), Pairs(expanded, down * across)


def agree(expr: Expr, grid: GridFrame, pairs: Pairs, ansi: bool, codebook: Codebook) -> bool:
    found = GridEvaluator(ansi, codebook).on_grid(expr, grid)
    assert found.dtype == np.bool_ and found.shape == grid.shape
    return found.ravel().tolist() == Evaluator(ansi, codebook).holds(expr, pairs).tolist()


@given(expressions("boolean", 3), st.integers(0, 1 << 30), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_a_grid_agrees_with_its_pairs(expr: Expr, seed: int, down: int, across: int) -> None:
    codebook = Codebook([expr])
    grid, pairs = frames(seed, down, across, codebook)
    assert is_gridable(expr)
    assert agree(expr, grid, pairs, ansi=False, codebook=codebook)
    try:
        GridEvaluator(True, codebook).on_grid(expr, grid)
    except EvaluationError:
        return
    assert agree(expr, grid, pairs, ansi=True, codebook=codebook)


@given(expressions("boolean", 3), st.integers(0, 1 << 30), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=500, deadline=None)
def test_a_program_agrees_with_the_grid(expr: Expr, seed: int, down: int, across: int) -> None:
    program = Program.of(expr)
    if program is None:
        return
    codebook = Codebook([expr])
    evaluator = Evaluator(True, codebook)
    for number in range(2):
        grid, _ = frames(seed + number, down, across, codebook)
        vectors = [grid.column(column) for column in program.columns]
        words = [evaluator.literal(word).values for word in program.words]
        if all(found.valid is None for found in vectors):
            found = program.run([values for values, _ in vectors], grid.shape, words)
            assert found.tolist() == GridEvaluator(True, codebook).on_grid(expr, grid).tolist()


X, Y = Col(0, COLUMNS.index("double"), "double", "x"), Col(2, COLUMNS.index("double"), "double", "y")
K, L = Col(0, COLUMNS.index("int"), "int", "k"), Col(2, COLUMNS.index("int"), "int", "l")
ZERO, ONE = lit(0.0, "double"), lit(1.0, "double")


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Call("-", (X, Y), "double"), True),
        (Call("-", (K, L), "int"), True),
        (Call("abs", (Call("-", (X, Y), "double"),), "double"), True),
        (Call("neg", (K,), "int"), True),
        (Call("/", (X, Y), "double"), True),
        (Call("/", (X, ONE), "double"), True),
        (Call("/", (X, ZERO), "double"), True),
        (Call("%", (K, lit(2, "int")), "int"), True),
        (Call("cast", (K,), "double"), True),
        (Call("cast", (K,), "bigint"), True),
        (Call("cast", (X,), "float"), True),
        (Call("cast", (Col(0, 9, "decimal(10,2)", "c"),), "double"), False),
        (
            Call("<", (Col(0, 9, "decimal(10,2)", "c"), Col(2, 9, "decimal(10,2)", "c")), "boolean"),
            True,
        ),
        (Call("=", (Col(0, 9, "string", "s"), Col(2, 9, "string", "s")), "boolean"), True),
        (Call("isnull", (Col(0, 9, "decimal(30,2)", "w"),), "boolean"), True),
        (
            Call("dot", (Col(0, 9, "array<double>", "v"), Col(2, 9, "array<double>", "v")), "double"),
            False,
        ),
        (Apply(PythonPredicate("p", lambda x: x > 0), (X,)), False),
        (
            Call("+", (Col(0, 9, "decimal(10,2)", "c"), Lit(1, "decimal(1,0)", "1")), "decimal(11,2)"),
            False,
        ),
    ],
)
def test_what_fits_on_a_grid(expr: Expr, expected: bool) -> None:
    assert is_gridable(expr) == expected


def numbers(op: str, *args: Expr) -> Call:
    return Call(op, args, "double")


DIFFERENCE = numbers("-", X, Y)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "="])
@pytest.mark.parametrize("other", [ONE, X, numbers("+", X, Y), numbers("neg", Y)])
@pytest.mark.parametrize("mirrored", [False, True])
def test_programs_order_nan_as_spark_does(op: str, other: Expr, mirrored: bool) -> None:
    sides = (other, DIFFERENCE) if mirrored else (DIFFERENCE, other)
    test = Call(op, sides, "boolean")
    expr = Call("or", (test, Call("not", (Call("and", (test, test), "boolean"),), "boolean")), "boolean")
    values = np.array([v for v in VALUES["double"] if v is not None])
    columns = {0: Vector(values.reshape(-1, 1), None), 2: Vector(values.reshape(1, -1), None)}
    grid = GridFrame(2, (len(values),) * 2, lambda c: columns[c.stream])
    for each in (test, expr):
        program = Program.of(each)
        assert program is not None
        found = program.run([columns[c.stream].values for c in program.columns], grid.shape)
        assert found.tolist() == GridEvaluator(True, Codebook()).on_grid(each, grid).tolist()


def test_programs_use_their_buffers_again() -> None:
    square = numbers("*", DIFFERENCE, DIFFERENCE)
    program = Program.of(Call("<=", (numbers("+", square, square), ONE), "boolean"))
    assert program is not None
    down, across = np.arange(6.0).reshape(-1, 1), np.arange(5.0).reshape(1, -1)
    columns = [down if column.stream == 0 else across for column in program.columns]
    for _ in range(3):
        found = program.run(columns, (6, 5))
        assert found.tolist() == (2 * (down - across) ** 2 <= 1).tolist()
        buffers = {dtype.name: len(pool) for dtype, pool in program._pool.items()}
        assert buffers == {"float64": 1, "bool": 1}


@pytest.mark.parametrize(
    "expr",
    [
        Call("<", (numbers("/", X, Y), ONE), "boolean"),
        Call("<", (Call("+", (K, L), "int"), K), "boolean"),
        Call("<", (X, lit(None, "double")), "boolean"),
        Call("<", (X, lit(math.nan, "double")), "boolean"),
        Call("isnull", (X,), "boolean"),
    ],
)
def test_what_is_no_program(expr: Expr) -> None:
    assert Program.of(expr) is None


def test_a_condition_on_one_side_is_broadcast() -> None:
    codebook = Codebook()
    grid, pairs = frames(1, 3, 4, codebook)
    for expr in (Call("<", (X, ONE), "boolean"), Call("isnull", (Y,), "boolean"), lit(True, "boolean")):
        assert agree(expr, grid, pairs, ansi=True, codebook=codebook)
