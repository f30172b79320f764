"""Comparisons by Spark's rules: NaN equals itself and is the largest value, -0.0 equals 0.0."""

from __future__ import annotations

import numpy as np

from sparkshed.engine import wide
from sparkshed.engine.arrays import AnyArray, Bools, Vector, both_valid
from sparkshed.engine.wide import WIDE, alike


def _has_nan(values: AnyArray) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def equal(left: AnyArray, right: AnyArray) -> Bools:
    """Elementwise equality of values that are not NULL."""
    left, right = alike(left, right)
    if left.dtype == WIDE:
        return wide.equal(left, right)
    same: Bools = np.equal(left, right).astype(np.bool_, copy=False)
    if _has_nan(left) and _has_nan(right):
        same = same | (np.isnan(left) & np.isnan(right))
    return same


def less(left: AnyArray, right: AnyArray) -> Bools:
    """Elementwise `<`."""
    left, right = alike(left, right)
    if left.dtype == WIDE:
        return wide.less(left, right)
    below: Bools = np.less(left, right).astype(np.bool_, copy=False)
    if _has_nan(right):
        below = below | (np.isnan(right) & ~np.isnan(left))
    return below


def less_equal(left: AnyArray, right: AnyArray) -> Bools:
    """Elementwise `<=`."""
    left, right = alike(left, right)
    if left.dtype == WIDE:
        return ~wide.less(right, left)
    below: Bools = np.less_equal(left, right).astype(np.bool_, copy=False)
    if _has_nan(right):
        below = below | np.isnan(right)
    return below


def compare(op: str, left: Vector, right: Vector) -> Vector:
    """One of `=`, `<`, `<=`, `>`, `>=`; NULL where an operand is."""
    a, b = left.values, right.values
    valid = both_valid(left.valid, right.valid)
    if op == "=":
        return Vector(equal(a, b), valid)
    if op == "<":
        return Vector(less(a, b), valid)
    if op == "<=":
        return Vector(less_equal(a, b), valid)
    return Vector(less(b, a) if op == ">" else less_equal(b, a), valid)


def null_safe_equal(left: Vector, right: Vector) -> Vector:
    """`<=>`: NULL equals NULL and nothing else."""
    same = equal(left.values, right.values)
    if left.valid is None and right.valid is None:
        return Vector(same, None)
    here = np.ones(1, np.bool_) if left.valid is None else left.valid
    there = np.ones(1, np.bool_) if right.valid is None else right.valid
    return Vector((same & here & there) | ~(here | there), None)


def extreme(op: str, left: Vector, right: Vector) -> Vector:
    """The larger (`greatest`) or smaller (`least`) operand, the other one where one is NULL."""
    a, b = alike(left.values, right.values)
    keep = ~less(a, b) if op == "greatest" else ~less(b, a)
    if left.valid is None and right.valid is None:
        return Vector(np.where(keep, a, b), None)
    here = np.ones(1, np.bool_) if left.valid is None else left.valid
    there = np.ones(1, np.bool_) if right.valid is None else right.valid
    return Vector(np.where((keep & here) | ~there, a, b), here | there)
