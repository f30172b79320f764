"""Add the equalities that others imply: `a.k = b.k` and `b.k = c.k` give `a.k = c.k`."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.logical import Implied, ShedJoin
from sparkshed.sql.expr import Call, Col
from sparkshed.sql.predicate import Equality, Predicate


def imply_equalities(plan: ShedJoin) -> ShedJoin:
    """More links mean more orders to choose from, and keys that all streams share."""
    known = set()
    groups: list[set[Col]] = []
    for predicate in plan.predicates:
        if isinstance(predicate.form, Equality) and not predicate.form.null_safe:
            pair = {predicate.form.left, predicate.form.right}
            known.add(frozenset(pair))
            touching = [group for group in groups if group & pair]
            groups = [group for group in groups if not group & pair]
            groups.append(pair.union(*touching))
    implied = []
    for group in groups:
        columns = sorted(group, key=lambda column: (column.stream, column.column))
        for number, left in enumerate(columns):
            for right in columns[number + 1 :]:
                if left.stream != right.stream and frozenset((left, right)) not in known:
                    expr = Call("=", (left, right), "boolean")
                    text = f"{left.text} = {right.text}"
                    implied.append(Implied(Predicate(text, expr, Equality(left, right))))
    return replace(plan, implied=tuple(implied))
