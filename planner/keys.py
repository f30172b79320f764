"""Keys that all streams share."""

from __future__ import annotations

from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.predicate import Equality


def common_keys(plan: ShedJoin) -> tuple[int, ...] | None:
    """An input column of every stream such that all are equal in each result, if there is one.

    With the implied equalities at hand, such a column is equal to one of each other stream directly.
    """
    partners: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for predicate in plan.linking:
        if isinstance(predicate.form, Equality) and not predicate.form.null_safe:
            left = (predicate.form.left.stream, predicate.form.left.column)
            right = (predicate.form.right.stream, predicate.form.right.column)
            partners.setdefault(left, set()).add(right)
            partners.setdefault(right, set()).add(left)
    for (stream, column), others in sorted(partners.items()):
        keys = {stream: column}
        for other_stream, other_column in sorted(others):
            keys.setdefault(other_stream, other_column)
        if len(keys) == len(plan.names):
            return tuple(keys[number] for number in range(len(plan.names)))
    return None
