"""The join by its definition: nested loops and a scalar evaluator that shares nothing with the engine."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.predicate import Predicate

DAY = 86_400_000_000
Row = tuple[Any, ...]


def order(value: Any) -> Any:
    """A sort key under which NaN is the largest value and equals itself."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (0, value)


def scalar(expr: Expr, rows: dict[int, Row]) -> Any:
    """Value of an expression on one combination of rows; None is NULL."""
    if isinstance(expr, Col):
        return rows[expr.stream][expr.column]
    if isinstance(expr, Lit):
        return expr.value
    return call(expr, rows)


def call(expr: Call, rows: dict[int, Row]) -> Any:
    op = expr.op
    if op == "and":
        seen = [scalar(arg, rows) for arg in expr.args]
        return False if False in seen else (None if None in seen else True)
    if op == "or":
        seen = [scalar(arg, rows) for arg in expr.args]
        return True if True in seen else (None if None in seen else False)
    if op == "case":
        *branches, otherwise = expr.args
        for condition, value in zip(branches[::2], branches[1::2], strict=True):
            if scalar(condition, rows) is True:
                return scalar(value, rows)
        return scalar(otherwise, rows)
    values = [scalar(arg, rows) for arg in expr.args]
    if op == "isnull":
        return values[0] is None
    if op == "<=>":
        if None in values:
            return values[0] is None and values[1] is None
        return order(values[0]) == order(values[1])
    if op == "coalesce":
        return next((value for value in values if value is not None), None)
    if op in ("greatest", "least"):
        present = [value for value in values if value is not None]
        return (max if op == "greatest" else min)(present, key=order) if present else None
    if op == "in":
        if values[0] is None:
            return None
        if any(v is not None and order(v) == order(values[0]) for v in values[1:]):
            return True
        return None if None in values[1:] else False
    if any(value is None for value in values):
        return None
    return plain(op, values)


def plain(op: str, values: list[Any]) -> Any:
    if op == "not":
        return not values[0]
    if op == "neg":
        return -values[0]
    if op == "abs":
        return abs(values[0])
    if op == "cast":
        return float(values[0])
    a, b = values
    if op in ("+", "-", "*"):
        return a + b if op == "+" else (a - b if op == "-" else a * b)
    a, b = order(a), order(b)
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def time_of(spec: JoinSpec, stream: int, row: Row) -> int | None:
    time = row[spec.streams[stream].time]
    days = spec.streams[stream].types[spec.streams[stream].time] == "date"
    return time if time is None else time * (DAY if days else 1)


def naive_join(
    spec: JoinSpec, predicates: list[Predicate], streams: list[list[Row]], ids: list[int]
) -> Counter[Row]:
    """Multiset of results, each as the tuple of its rows' ids."""
    found: Counter[Row] = Counter()
    for combination in itertools.product(*streams):
        times = [time_of(spec, i, row) for i, row in enumerate(combination)]
        if None in times:
            continue
        pairs = itertools.permutations(range(len(times)), 2)
        if any(spec.bounds[i][k] is not None and times[i] - times[k] > spec.bounds[i][k] for i, k in pairs):
            continue
        rows = dict(enumerate(combination))
        if all(scalar(predicate.expr, rows) is True for predicate in predicates):
            found[tuple(row[ids[i]] for i, row in enumerate(combination))] += 1
    return found
