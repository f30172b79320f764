"""Forms of compiled conditions over arrays and maps that an index can use."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from sparkshed.sql.expr import COLLECTIVE, Call, Col, Expr, Lit
from sparkshed.sql.predicate import Form, Overlap, Similarity, WeightedOverlap

Number = int | float | Decimal

_FLIPPED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}

_LARGEST_INT = (1 << 31) - 1


def indexed(expr: Expr) -> tuple[Expr, Form | None]:
    """A conjunct's expression, and the form through which an index finds where it is true."""
    if not isinstance(expr, Call) or expr.op not in _FLIPPED:
        return expr, None
    op, (measured, other) = expr.op, expr.args
    constant = _constant(other)
    if constant is None:
        op, measured, constant = _FLIPPED[op], other, _constant(measured)
    measure = _measure(measured)
    if constant is None or measure is None or math.isnan(constant):
        return expr, None
    left, right = measure.args
    assert isinstance(left, Col)
    assert isinstance(right, Col)
    if measure.op == "overlap":
        least = _least(op, constant)
        if least is None:
            return expr, None
        # Also where size(NULL) is -1: that is below any `least`.
        whole = Lit(least, "int", str(least))
        return Call(">=", (measure, whole), "boolean"), Overlap(left, right, least)
    if measure.op == "map_dot":
        useful = op in (">=", ">") and constant > 0
        return expr, WeightedOverlap(left, right, float(constant)) if useful else None
    return expr, Similarity(measure.op, left, right, op, float(constant))


def _measure(expr: Expr) -> Call | None:
    """The operator over whole arrays or maps, without conversions that keep its value."""
    while isinstance(expr, Call) and expr.op == "cast" and expr.type != "float":
        expr = expr.args[0]
    if isinstance(expr, Call) and expr.op == "coalesce" and expr.args[1:] == (Lit(-1, "int", "-1"),):
        expr = expr.args[0]
    return expr if isinstance(expr, Call) and expr.op in COLLECTIVE else None


def _constant(expr: Expr) -> Number | None:
    """The number that the expression always is."""
    if isinstance(expr, Lit):
        value = expr.value
        return value if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) else None
    if not isinstance(expr, Call) or expr.op != "cast":
        return None
    value = _constant(expr.args[0])
    if value is None or expr.type not in ("float", "double"):
        return value
    try:
        number = float(value)
        return float(struct.unpack("f", struct.pack("f", number))[0]) if expr.type == "float" else number
    except OverflowError:
        return None


def _least(op: str, constant: Number) -> int | None:
    """The least whole number that meets the comparison, if it is above 0."""
    if op not in (">=", ">") or math.isinf(constant):
        return None
    least = math.ceil(constant) if op == ">=" else math.floor(constant) + 1
    return least if 1 <= least <= _LARGEST_INT else None
