"""Decimals of all sizes against Python's integers and decimals: 64 bits, 128 bits and beyond agree."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from engine.build import lit
from engine.test_evaluate import col, run
from sparkshed.engine import wide
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.wide import WIDE
from sparkshed.sql.expr import Call
from sparkshed.sql.types import decimal_of

EDGES = [0, -1, (1 << 63) - 1, -(1 << 63), 1 << 63, -(1 << 63) - 1, 1 << 64, -(1 << 64), -(10**38) + 1]
INTEGERS = st.sampled_from(EDGES) | st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-100, 100)


def wide_array(values: list[int]) -> np.ndarray:
    return np.concatenate([wide.wide(wide.from_int(value)) for value in values])


def integers(values: np.ndarray) -> list[int]:
    if values.dtype != WIDE:
        return values.tolist()
    return [int.from_bytes(v.tobytes(), "little", signed=True) for v in values]


@given(st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=8))
def test_integers_of_128_bits(pairs: list[tuple[int, int]]) -> None:
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    a, b = wide_array(left), wide_array(right)
    assert integers(a) == left
    assert wide.equal(a, b).tolist() == [x == y for x, y in pairs]
    assert wide.less(a, b).tolist() == [x < y for x, y in pairs]
    assert wide.fits(a).tolist() == [-(1 << 63) <= x < 1 << 63 for x in left]
    assert (wide.narrow(a).dtype == np.int64) == wide.fits(a).all()
    for form in (a, wide.narrow(a)):
        assert integers(wide.negative(form)) == [-x for x in left]
        assert integers(wide.absolute(form)) == [abs(x) for x in left]
    halves = [x // 2 for x in left], [y // 2 for y in right]
    assert integers(wide.add(*map(wide_array, halves))) == [x + y for x, y in zip(*halves, strict=True)]
    for x, double in zip(left, wide.as_double(a).tolist(), strict=True):
        assert abs(Fraction(double) - x) <= abs(x) * Fraction(1, 1 << 51)


@st.composite
def decimals(draw: st.DrawFn, most: int = 38) -> tuple[str, list[Decimal | None]]:
    """A type and values of it; small ones are likely."""
    precision = draw(st.integers(1, most))
    scale = draw(st.integers(0, precision))
    limit = 10 ** draw(st.integers(1, precision)) - 1
    values = st.none() | st.integers(-limit, limit) | st.sampled_from([limit, -limit, limit // 2, 0])
    found = draw(st.lists(values, min_size=3, max_size=3))
    return f"decimal({precision},{scale})", [None if v is None else scaled(v, scale) for v in found]


def scaled(value: int, scale: int) -> Decimal:
    return Decimal((value < 0, tuple(map(int, str(abs(value)))), -scale))


def rounded(value: Fraction, type_: str) -> Decimal | None:
    """Half away from zero; None if it has too many digits."""
    precision, scale = decimal_of(type_) or (0, 0)
    size = abs(value) * 10**scale
    whole = math.floor(size + Fraction(1, 2))
    return None if whole >= 10**precision else scaled(-whole if value < 0 else whole, scale)


def agree(expr: Call, columns: list[tuple[list[Any], str]], expected: list[Any]) -> None:
    """Without ANSI mode NULL stands where a result does not fit, with it that is an error."""
    assert run(expr, *columns, ansi=False) == expected
    present = [all(v is not None for v in row) for row in zip(*(c[0] for c in columns), strict=True)]
    if any(ok and value is None for ok, value in zip(present, expected, strict=True)):
        with pytest.raises(EvaluationError):
            run(expr, *columns)
    else:
        assert run(expr, *columns) == expected


@given(st.sampled_from("+-*"), decimals(37), decimals(37), st.integers(0, 37))
@settings(max_examples=500, deadline=None)
def test_arithmetic(op: str, left: Any, right: Any, more: int) -> None:
    s1, s2 = ((decimal_of(type_) or (0, 0))[1] for type_, _ in (left, right))
    scale = s1 + s2 if op == "*" else max(s1, s2)
    assume(scale <= 38)
    type_ = f"decimal({min(max(scale, 1) + more, 38)},{scale})"
    expected = []
    for a, b in zip(left[1], right[1], strict=True):
        if a is None or b is None:
            expected.append(None)
        else:
            x, y = Fraction(a), Fraction(b)
            expected.append(rounded(x * y if op == "*" else (x + y if op == "+" else x - y), type_))
    expr = Call(op, (col(0, left[0]), col(1, right[0])), type_)
    agree(expr, [(left[1], left[0]), (right[1], right[0])], expected)


@given(decimals(), st.data())
@settings(deadline=None)
def test_comparisons_and_choices(column: Any, data: st.DataObject) -> None:
    type_, left = column
    right = data.draw(st.permutations(left))
    columns = [(left, type_), (right, type_)]
    pairs = list(zip(left, right, strict=True))
    a, b = col(0, type_), col(1, type_)
    known = [x is not None and y is not None for x, y in pairs]
    for op, test in {"=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}.items():
        expected = [getattr(x, test)(y) if ok else None for ok, (x, y) in zip(known, pairs, strict=True)]
        assert run(Call(op, (a, b), "boolean"), *columns) == expected
    first = [y if x is None else x for x, y in pairs]
    assert run(Call("coalesce", (a, b), type_), *columns) == first
    for op, best in (("greatest", max), ("least", min)):
        expected = [best((v for v in pair if v is not None), default=None) for pair in pairs]
        assert run(Call(op, (a, b), type_), *columns) == expected
    with localcontext() as context:
        context.prec = 60
        assert run(Call("neg", (a,), type_), *columns) == [None if x is None else -x for x in left]
        assert run(Call("abs", (a,), type_), *columns) == [None if x is None else abs(x) for x in left]
        constant = next((x for x in left if x is not None), Decimal(0))
        expected = [None if x is None else x < constant for x in left]
        assert run(Call("<", (a, lit(constant, type_)), "boolean"), *columns) == expected


@given(decimals(), decimals())
@settings(max_examples=300, deadline=None)
def test_casts_between_decimals(source: Any, target: Any) -> None:
    type_ = target[0]
    expected = [None if v is None else rounded(Fraction(v), type_) for v in source[1]]
    agree(Call("cast", (col(0, source[0]),), type_), [(source[1], source[0])], expected)


@given(decimals())
@settings(max_examples=300, deadline=None)
@example(("decimal(38,0)", [Decimal((1 << 63) - 1), Decimal(-(1 << 63)), Decimal(1 << 63)]))
@example(("decimal(19,0)", [Decimal((1 << 53) + 1), Decimal(-(1 << 63)), None]))
@example(("decimal(18,17)", [Decimal("0.30000000000000004"), Decimal("1.10000000000000009"), None]))
def test_casts_from_decimals(column: Any) -> None:
    type_, values = column
    doubles = run(Call("cast", (col(0, type_),), "double"), (values, type_))
    assert doubles == [None if v is None else float(v) for v in values]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=3), decimals())
@settings(deadline=None)
@example([-(1 << 63)], ("decimal(18,0)", []))
@example([-(1 << 63)], ("decimal(38,19)", []))
def test_casts_from_integers(values: list[int], target: Any) -> None:
    type_ = target[0]
    expected = [rounded(Fraction(v), type_) for v in values]
    agree(Call("cast", (col(0, "bigint"),), type_), [(values, "bigint")], expected)


LONG = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([-(1 << 63), -1, 0, 3_037_000_500, 1 << 32])


@given(st.lists(st.tuples(LONG, LONG), min_size=1, max_size=6))
@settings(max_examples=300)
def test_products_of_long_integers(pairs: list[tuple[int, int]]) -> None:
    columns = [([pair[side] for pair in pairs], "bigint") for side in (0, 1)]
    expr = Call("*", (col(0, "bigint"), col(1, "bigint")), "bigint")
    exact = [a * b for a, b in pairs]
    wrapped = [(v + (1 << 63)) % (1 << 64) - (1 << 63) for v in exact]
    assert run(expr, *columns, ansi=False) == wrapped
    if exact == wrapped:
        assert run(expr, *columns) == exact
    else:
        with pytest.raises(EvaluationError, match=r"^\[ARITHMETIC_OVERFLOW\]"):
            run(expr, *columns)
