"""Relations that no time bound links: what to write, and why what is there will not do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from sqlglot import exp

from sparkshed.sql.bounds import BoundMatrix, TimeBound
from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.errors import BoundError, listing
from sparkshed.sql.scope import Reference, Scope, column_parts, columns_in, quoted
from sparkshed.sql.types import TIMES, is_integral

#: Of columns that could be times, how much of them is named.
_MOST_NAMED = 8


def refuse_unbound(
    scope: Scope, bounds: Sequence[TimeBound], times: Sequence[str | None], joining: Sequence[Conjunct]
) -> None:
    """Refuse a join with two relations whose times have nothing to do with each other.

    Args:
        scope: The relations.
        bounds: The time bounds that were found.
        times: The time column of each relation, None where no condition speaks of one.
        joining: Conditions over several relations.

    Raises:
        BoundError: The first such pair, with a condition to add.
    """
    at = BoundMatrix.close(len(scope.relations), bounds).at
    for late, early in combinations(range(len(at)), 2):
        if at[late][early] is None and at[early][late] is None:
            one, two = (scope.relations[number].name for number in (late, early))
            reason = _reason(scope, late, early, times, joining)
            msg = f"no time bound links `{one}` and `{two}`{f': {reason}' if reason else '. '}"
            raise BoundError(msg + _advice(scope, late, early, times))


def _reason(
    scope: Scope, late: int, early: int, times: Sequence[str | None], joining: Sequence[Conjunct]
) -> str:
    """Why a condition that looks like one is no time bound."""
    for conjunct in joining:
        found = [own for own in _references(conjunct) if own.relation in (late, early)]
        if {own.relation for own in found} != {late, early}:
            continue
        timed = [own for own in found if own.field.type in TIMES]
        text = f"`{conjunct.plain_text()}` is none, "
        types = {own.field.type for own in timed}
        if {own.relation for own in timed} == {late, early} and len(types) > 1:
            told = [f"{_plain(scope, own)} is {own.field.type.upper()}" for own in timed]
            return f"{text}because {' and '.join(dict.fromkeys(told))}. "
        if {own.relation for own in timed} == {late, early}:
            for own in timed:
                known = times[own.relation]
                if known is not None and known != scope.qualified(own.relation, own.field.name):
                    name, by = scope.relations[own.relation].name, known.replace("`", "")
                    return f"{text}because the time of `{name}` is {by}, by other conditions. "
            return (
                f"{text}because it is not <=, <, =, > or >= between one column and the other, plus or minus "
                "constant time. "
            )
        others = [own for own in found if own.field.type not in TIMES]
        if conjunct.node.find(exp.Interval) and others:
            return f"{text}because {_plain(scope, others[0])} is {others[0].field.type.upper()}. "
    return ""


def _references(conjunct: Conjunct) -> Iterator[Reference]:
    for column in columns_in(conjunct.node, conjunct.scope.fold):
        reference = conjunct.scope.resolve(column_parts(column), conjunct.visible)
        if reference is not None and not reference.nested:
            yield reference


def _advice(scope: Scope, late: int, early: int, times: Sequence[str | None]) -> str:
    """A condition between columns that are there."""
    columns = []
    for number in (late, early):
        relation = scope.relations[number]
        named = [own for own in relation.fields if own.type in TIMES]
        # The one that other conditions speak of, if there is one.
        spoken = [own for own in named if scope.qualified(number, own.name) == times[number]]
        if not named:
            fields = [own.name for own in relation.fields][:_MOST_NAMED]
            whole = next((quoted(own.name) for own in relation.fields if is_integral(own.type)), None)
            made = "CAST(… AS TIMESTAMP)" if whole is None else f"timestamp_millis({whole})"
            return (
                f"`{relation.name}` has no column of type TIMESTAMP or DATE; it has {listing(fields)}. Make "
                f"one in a sub-query, for example (SELECT *, {made} AS ts FROM …)."
            )
        best = (spoken or named)[0]
        columns.append((_plain(scope, Reference(number, best)), best.type))
    (left, left_type), (right, right_type) = columns
    if left_type != right_type:
        left, right = (
            name if type_ == "timestamp" else f"CAST({name} AS TIMESTAMP)" for name, type_ in columns
        )
    return (
        f"Add one, for example {left} BETWEEN {right} - INTERVAL 20 SECONDS AND "
        f"{right} + INTERVAL 20 SECONDS (any <=, <, >=, > between TIMESTAMP or DATE columns of one type, "
        "with a constant interval of days or less)."
    )


def _plain(scope: Scope, column: Reference) -> str:
    """A column as people write it: in backquotes only where it needs them."""
    parts = (scope.relations[column.relation].name, column.field.name)
    return ".".join(part if part.isidentifier() else quoted(part) for part in parts)
