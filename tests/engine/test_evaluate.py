"""The evaluator against Spark's documented rules, case by case."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.build import ARROW, lit
from sparkshed.engine.arrays import Ints, Vector
from sparkshed.engine.codes import Codebook
from sparkshed.engine.encode import encode
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.evaluate import Evaluator
from sparkshed.sql.expr import Call, Col, Expr
from sparkshed.sql.types import decimal_of

NAN, INF = math.nan, math.inf
LONG = (1 << 63) - 1
EXTRA = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "binary": pa.binary(),
    "interval day to second": pa.duration("us"),
}


class Columns:
    """A frame over literal columns of one stream."""

    def __init__(self, vectors: list[Vector]) -> None:
        self._vectors = vectors
        self.size = len(vectors[0].values)

    def column(self, column: Col) -> Vector:
        return self._vectors[column.column]

    def select(self, rows: Ints) -> Columns:
        return Columns([vector.take(rows) for vector in self._vectors])


def arrow_type(type_: str) -> pa.DataType:
    shape = decimal_of(type_)
    return pa.decimal128(*shape) if shape else {**ARROW, **EXTRA}[type_]


def vector(values: list[Any], type_: str, codebook: Codebook | None = None) -> Vector:
    decode = (Codebook() if codebook is None else codebook).values
    if type_ in ("timestamp", "date", "interval day to second"):
        array = pa.array(values, pa.int32() if type_ == "date" else pa.int64())
        return decode(array.cast(arrow_type(type_)), type_)
    return decode(pa.array(values, arrow_type(type_)), type_)


def run(expr: Expr, *columns: tuple[list[Any], str], ansi: bool = True) -> list[Any]:
    codebook = Codebook([expr])
    frame = Columns([vector(values, type_, codebook) for values, type_ in columns])
    found = Evaluator(ansi, codebook).evaluate(expr, frame)
    values, valid = found
    size = frame.size
    out = np.broadcast_to(values, (size,)).tolist()
    if decimal_of(expr.type) or expr.type == "string":
        out = (
            encode(found, expr.type, size, codebook)
            .cast(pa.binary() if expr.type == "string" else arrow_type(expr.type))
            .to_pylist()
        )
    known = [True] * size if valid is None else np.broadcast_to(valid, (size,)).tolist()
    return [v if ok else None for v, ok in zip(out, known, strict=True)]


def col(number: int, type_: str) -> Col:
    return Col(0, number, type_, f"c{number}")


def op(name: str, type_: str, result: str, *columns: list[Any], ansi: bool = True) -> list[Any]:
    args = tuple(col(i, type_) for i in range(len(columns)))
    return run(Call(name, args, result), *((c, type_) for c in columns), ansi=ansi)


THREE = [True, False, None]
LEFT = [a for a in THREE for _ in THREE]
RIGHT = THREE * 3


def test_three_valued_logic() -> None:
    assert op("and", "boolean", "boolean", LEFT, RIGHT) == [
        True, False, None, False, False, False, None, False, None,
    ]  # fmt: skip
    assert op("or", "boolean", "boolean", LEFT, RIGHT) == [
        True, True, True, True, False, None, True, None, None,
    ]  # fmt: skip
    assert op("not", "boolean", "boolean", THREE) == [False, True, None]
    assert op("isnull", "boolean", "boolean", THREE) == [False, False, True]


def test_connectives_of_more_than_two() -> None:
    assert op("and", "boolean", "boolean", [True, None, None], [None, True, None], [True, True, False]) == [
        None,
        None,
        False,
    ]


@pytest.mark.parametrize("type_", ["double", "float"])
def test_nan_is_largest_and_equals_itself(type_: str) -> None:
    left, right = [NAN, NAN, 1.0, INF, -0.0], [NAN, INF, NAN, INF, 0.0]
    assert op("=", type_, "boolean", left, right) == [True, False, False, True, True]
    assert op("<", type_, "boolean", left, right) == [False, False, True, False, False]
    assert op("<=", type_, "boolean", left, right) == [True, False, True, True, True]
    assert op(">", type_, "boolean", left, right) == [False, True, False, False, False]
    assert op(">=", type_, "boolean", left, right) == [True, True, False, True, True]
    assert op("<=>", type_, "boolean", [NAN, None, None], [NAN, None, 1.0]) == [True, True, False]


def test_strings_compare_by_bytes() -> None:
    left, right = ["Z", "ä", "a", None, "\U0001f600"], ["a", "z", "ab", "a", "\uffff"]
    assert op("<", "string", "boolean", left, right) == [True, False, True, None, False]
    assert op(">", "binary", "boolean", [b"\x80", b""], [b"\x7f", b"\x00"]) == [True, False]


def test_in_is_null_without_a_match_beside_a_null() -> None:
    found = op("in", "int", "boolean", [1, 1, 1, None], [2, 1, 2, 1], [None, None, 3, 1])
    assert found == [None, True, False, None]


def test_greatest_and_least_skip_nulls() -> None:
    assert op("greatest", "double", "double", [1.0, None, None, NAN], [2.0, 3.0, None, 1.0])[:3] == [
        2.0,
        3.0,
        None,
    ]
    assert op("least", "double", "double", [1.0, None, NAN], [2.0, 3.0, 1.0]) == [1.0, 3.0, 1.0]
    assert math.isnan(op("greatest", "double", "double", [NAN], [INF])[0])
    assert op("least", "string", "string", ["b", None], ["a", "c"]) == [b"a", b"c"]


def test_case_and_coalesce() -> None:
    case = Call(
        "case", (col(0, "boolean"), col(1, "int"), col(2, "boolean"), lit(7, "int"), lit(None, "int")), "int"
    )
    columns = (
        ([True, False, None, False], "boolean"),
        ([1, 2, 3, None], "int"),
        ([True, True, None, None], "boolean"),
    )
    assert run(case, *columns) == [1, 7, None, None]
    assert op("coalesce", "string", "string", ["a", None, None], [None, "b", None]) == [b"a", b"b", None]


@pytest.mark.parametrize(
    ("name", "type_", "a", "b", "error", "wrapped"),
    [
        ("+", "int", (1 << 31) - 1, 1, "[ARITHMETIC_OVERFLOW]", -(1 << 31)),
        ("-", "bigint", -LONG - 1, 1, "[ARITHMETIC_OVERFLOW]", LONG),
        ("+", "bigint", LONG, LONG, "[ARITHMETIC_OVERFLOW]", -2),
        ("*", "bigint", 1 << 62, 2, "[ARITHMETIC_OVERFLOW]", -LONG - 1),
        ("*", "bigint", -LONG - 1, -1, "[ARITHMETIC_OVERFLOW]", -LONG - 1),
        ("*", "int", 1 << 20, 1 << 20, "[ARITHMETIC_OVERFLOW]", 0),
        ("+", "tinyint", 127, 1, "[BINARY_ARITHMETIC_OVERFLOW]", -128),
        ("*", "smallint", 256, 256, "[BINARY_ARITHMETIC_OVERFLOW]", 0),
        ("%", "int", 5, 0, "[REMAINDER_BY_ZERO]", None),
        ("%", "double", 5.0, 0.0, "[REMAINDER_BY_ZERO]", None),
        ("/", "double", 5.0, 0.0, "[DIVIDE_BY_ZERO]", None),
    ],
)
def test_ansi_errors_and_their_old_behaviour(
    name: str, type_: str, a: Any, b: Any, error: str, wrapped: Any
) -> None:
    with pytest.raises(EvaluationError) as caught:
        op(name, type_, type_, [a], [b])
    assert str(caught.value).startswith(error)
    assert isinstance(caught.value, ArithmeticError)
    assert op(name, type_, type_, [a], [b], ansi=False) == [wrapped]
    assert op(name, type_, type_, [None, a], [b, None]) == [None, None]


def test_largest_product_does_not_overflow() -> None:
    assert op("*", "bigint", "bigint", [-(1 << 62), LONG], [2, 1]) == [-LONG - 1, LONG]


def test_negation_and_absolute_value() -> None:
    for name in ("neg", "abs"):
        with pytest.raises(EvaluationError, match=r"^\[ARITHMETIC_OVERFLOW\]"):
            op(name, "bigint", "bigint", [-LONG - 1])
        assert op(name, "bigint", "bigint", [-LONG - 1], ansi=False) == [-LONG - 1]
    assert op("abs", "int", "int", [-3, None]) == [3, None]
    assert op("neg", "decimal(4,2)", "decimal(4,2)", [Decimal("1.25")]) == [Decimal("-1.25")]


def test_remainder_has_the_sign_of_the_dividend() -> None:
    assert op("%", "int", "int", [7, -7, 7, -7], [3, 3, -3, -3]) == [1, -1, 1, -1]
    assert op("%", "bigint", "bigint", [-LONG - 1], [-1]) == [0]
    assert op("%", "double", "double", [-7.5], [2.0]) == [-1.5]


def test_float_arithmetic_is_single_precision() -> None:
    total = op("+", "float", "float", [16777216.0], [1.0])
    assert total == [16777216.0]
    assert op("-", "double", "double", [INF], [1.0]) == [INF]


def test_branches_fail_only_where_they_are_needed() -> None:
    remainder = Call("=", (Call("%", (col(0, "int"), col(1, "int")), "int"), lit(1, "int")), "boolean")
    nonzero = Call("not", (Call("=", (col(1, "int"), lit(0, "int")), "boolean"),), "boolean")
    columns = ([5, 5, 4], "int"), ([0, 2, 2], "int")
    assert run(Call("and", (nonzero, remainder), "boolean"), *columns) == [False, True, False]
    zero = Call("not", (nonzero,), "boolean")
    assert run(Call("or", (zero, remainder), "boolean"), *columns) == [True, True, False]
    assert run(Call("case", (zero, lit(True, "boolean"), remainder), "boolean"), *columns) == [
        True,
        True,
        False,
    ]
    assert run(
        Call("coalesce", (col(1, "int"), Call("%", (lit(1, "int"), lit(0, "int")), "int")), "int"),
        ([1], "int"),
        ([2], "int"),
    ) == [2]
    with pytest.raises(EvaluationError):
        run(Call("and", (remainder, nonzero), "boolean"), *columns)


def test_an_and_with_a_null_left_side_still_evaluates_the_right() -> None:
    failing = Call("=", (Call("%", (lit(1, "int"), col(1, "int")), "int"), lit(0, "int")), "boolean")
    with pytest.raises(EvaluationError):
        run(Call("and", (col(0, "boolean"), failing), "boolean"), ([None], "boolean"), ([0], "int"))


def decimal(name: str, a: str, b: str, types: tuple[str, str], result: str, ansi: bool = True) -> Any:
    expr = Call(name, (col(0, types[0]), col(1, types[1])), result)
    return run(expr, ([Decimal(a)], types[0]), ([Decimal(b)], types[1]), ansi=ansi)[0]


def test_decimal_arithmetic_is_exact() -> None:
    small, wide = "decimal(4,2)", "decimal(38,10)"
    assert decimal("+", "99.99", "0.1", (small, "decimal(3,1)"), "decimal(5,2)") == Decimal("100.09")
    assert decimal("-", "1", "0.0000000001", (wide, wide), wide) == Decimal("0.9999999999")
    assert decimal("*", "1.25", "1.1", (small, "decimal(2,1)"), "decimal(7,3)") == Decimal("1.375")
    big = "9" * 17
    assert decimal("*", big, big, ("decimal(18,0)", "decimal(18,0)"), "decimal(37,0)") == int(big) ** 2


def test_decimal_overflow() -> None:
    with pytest.raises(EvaluationError, match=r"^\[NUMERIC_VALUE_OUT_OF_RANGE"):
        decimal("+", "9.9", "0.1", ("decimal(2,1)", "decimal(2,1)"), "decimal(2,1)")
    assert decimal("+", "9.9", "0.1", ("decimal(2,1)", "decimal(2,1)"), "decimal(2,1)", ansi=False) is None


def test_decimal_comparison_of_wide_values() -> None:
    type_ = "decimal(38,2)"
    big = Decimal("123456789012345678901234567890.12")
    assert op("<", type_, "boolean", [big, None], [big + Decimal("0.01"), big]) == [True, None]


def cast(values: list[Any], source: str, target: str, ansi: bool = True) -> list[Any]:
    return run(Call("cast", (col(0, source),), target), (values, source), ansi=ansi)


def test_casts_to_a_common_type() -> None:
    assert cast([300, None], "int", "bigint") == [300, None]
    assert cast([(1 << 53) + 1], "bigint", "double") == [9007199254740992.0]
    assert cast([0.1], "float", "double") == [float(np.float32(0.1))]
    assert cast([7], "int", "decimal(5,2)") == [Decimal("7.00")]
    assert cast([Decimal("0.10"), None], "decimal(5,2)", "double") == [0.1, None]
    wide = Decimal("1234567890123456789012.34")
    assert cast([wide], "decimal(38,2)", "double") == [float(wide)]
    assert cast([Decimal("1.25")], "decimal(5,2)", "decimal(5,1)") == [Decimal("1.3")]
    with pytest.raises(EvaluationError, match=r"^\[NUMERIC_VALUE_OUT_OF_RANGE"):
        cast([1000], "int", "decimal(3,1)")
    assert cast([1000], "int", "decimal(3,1)", ansi=False) == [None]


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (1, "int", "string"),
        (1, "int", "tinyint"),
        (1, "int", "boolean"),
        (1.5, "double", "int"),
        (1.5, "double", "decimal(5,2)"),
        (Decimal("1.5"), "decimal(5,2)", "int"),
    ],
)
def test_a_cast_that_no_common_type_needs_is_refused(value: Any, source: str, target: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"from {source} to {target}")):
        cast([value], source, target)


def test_times() -> None:
    interval = "interval day to second"
    difference = Call("-", (col(0, "timestamp"), col(1, "timestamp")), interval)
    assert run(difference, ([10, None], "timestamp"), ([3, 3], "timestamp")) == [7, None]
    later = Call("+", (col(0, "timestamp"), lit(5, interval)), "timestamp")
    assert run(later, ([10], "timestamp")) == [15]
    days = Call("-", (col(0, "date"), col(1, "date")), interval)
    assert run(days, ([3], "date"), ([1], "date")) == [2 * 86_400_000_000]
    assert run(Call("+", (col(0, "date"), lit(2, "int")), "date"), ([3], "date")) == [5]
    with pytest.raises(EvaluationError, match=r"^\[DATETIME_OVERFLOW\]"):
        run(later, ([LONG], "timestamp"))
    with pytest.raises(EvaluationError, match=r"^\[INTERVAL_ARITHMETIC_OVERFLOW"):
        run(Call("*", (col(0, interval), lit(2, "bigint")), interval), ([LONG], interval))


def test_constants_broadcast() -> None:
    frame = Columns([vector([1, 2, 3], "int")])
    assert Evaluator(True, Codebook()).holds(lit(True, "boolean"), frame).tolist() == [True] * 3
    assert Evaluator(True, Codebook()).holds(lit(None, "boolean"), frame).tolist() == [False] * 3
    empty = Call("=", (col(0, "int"), lit(None, "int")), "boolean")
    assert run(empty, ([1, 2], "int")) == [None, None]
    assert run(lit(Decimal("1.5"), "decimal(30,2)"), ([1], "int")) == [Decimal("1.50")]
