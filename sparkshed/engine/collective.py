"""Operators over whole arrays and maps: one result for each pair of rows of two columns."""

from __future__ import annotations

from sparkshed.engine.arrays import Bools, Ints, Vector, both_valid
from sparkshed.engine.lists import Lists
from sparkshed.engine.matching import common_below, map_dot, overlap
from sparkshed.engine.measures import measure, squared_norms

__all__ = ["collective", "common_below", "kind_of", "map_dot", "measure", "overlap", "squared_norms"]


def kind_of(op: str) -> str:
    """The form in which an operator reads its columns: `sets`, `maps` or `vectors`."""
    return {"overlap": "sets", "map_dot": "maps"}.get(op, "vectors")


def collective(op: str, left: Lists, left_rows: Ints, right: Lists, right_rows: Ints) -> Vector:
    """An operator of :data:`sparkshed.sql.expr.COLLECTIVE` on rows `left_rows[n]` and `right_rows[n]`."""
    if op not in ("overlap", "map_dot"):
        return measure(op, left, left_rows, right, right_rows)
    valid = both_valid(_present(left, left_rows), _present(right, right_rows))
    compute = overlap if op == "overlap" else map_dot
    return Vector(compute(left, left_rows, right, right_rows), valid)


def _present(lists: Lists, rows: Ints) -> Bools | None:
    return None if lists.valid is None else lists.valid.take(rows)
