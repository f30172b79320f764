"""Merge ranges over the same two columns: BETWEEN comes as two half-open ones."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.expr import Call, Expr
from sparkshed.sql.predicate import Band, Predicate


def merge_bands(plan: ShedJoin) -> ShedJoin:
    """One range with two ends lets an index find far fewer candidates than two with one."""
    merged: list[Predicate] = []
    for predicate in plan.predicates:
        for number, other in enumerate(merged):
            both = _merged(other, predicate)
            if both is not None:
                merged[number] = both
                break
        else:
            merged.append(predicate)
    return replace(plan, predicates=tuple(merged))


def _merged(first: Predicate, second: Predicate) -> Predicate | None:
    a, b = first.form, second.form
    if not isinstance(a, Band) or not isinstance(b, Band) or a.exact != b.exact:
        return None
    if (b.left, b.right) == (a.right, a.left):
        b = Band(b.right, b.left, _negated(b.high), _negated(b.low), b.exact, b.scale)
    if (b.left, b.right) != (a.left, a.right):
        return None
    low = max((v for v in (a.low, b.low) if v is not None), default=None)
    high = min((v for v in (a.high, b.high) if v is not None), default=None)
    expr = Call("and", (*_conjuncts(first.expr), *_conjuncts(second.expr)), "boolean")
    band = Band(a.left, a.right, low, high, a.exact, max(a.scale, b.scale))
    return Predicate(f"{first.text} AND {second.text}", expr, band)


def _negated(value: float | int | None) -> float | int | None:
    return None if value is None else -value


def _conjuncts(expr: Expr) -> tuple[Expr, ...]:
    return expr.args if isinstance(expr, Call) and expr.op == "and" else (expr,)
