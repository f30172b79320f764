"""What the front end learned about one conjunct of ON or WHERE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparkshed.sql.expr import Apply, Call, Col, Expr, streams_of


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right` (or `left <=> right`): two columns of the same type on different streams."""

    left: Col
    right: Col
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """`low <= left - right <= high`, where None leaves a side open.

    Whole types (integers, timestamps in microseconds, dates in days) give bounds that are exact and
    inclusive. With `exact` false (floating point, decimals) the bounds locate candidates, and the
    predicate's expression decides where rounding could. `scale` is the size of the constants that the
    condition adds, which may be far larger than the bounds.
    """

    left: Col
    right: Col
    low: float | int | None
    high: float | int | None
    exact: bool
    scale: float = 0.0


@dataclass(frozen=True, slots=True)
class Overlap:
    """`size(array_intersect(left, right)) >= least`, where `least` is 1 or more."""

    left: Col
    right: Col
    least: int


@dataclass(frozen=True, slots=True)
class WeightedOverlap:
    """The inner product of two maps is `least` or more, where `least` is above 0.

    Whether exactly `least` is enough, the predicate's expression says.
    """

    left: Col
    right: Col
    least: float


@dataclass(frozen=True, slots=True)
class Similarity:
    """`measure(left, right) op threshold` over two arrays of numbers.

    `measure` is an operator of :data:`sparkshed.sql.expr.OPERATORS`, `op` one of `>=`, `>`, `<=`, `<`.
    """

    measure: str
    left: Col
    right: Col
    op: str
    threshold: float


Form = Equality | Band | Overlap | WeightedOverlap | Similarity


@dataclass(frozen=True, slots=True)
class Predicate:
    """One conjunct over two or more streams: its text, its expression and its indexable form."""

    text: str
    expr: Expr
    form: Form | None = None

    @property
    def streams(self) -> frozenset[int]:
        """Numbers of the streams it links."""
        return streams_of(self.expr)


def renumber(
    predicate: Predicate,
    numbers: Mapping[int, int],
    columns: Mapping[int, Sequence[int]] | None = None,
) -> Predicate:
    """The predicate with other stream numbers and, by the old ones, other numbers of their columns."""

    def placed(column: Col) -> Col:
        number = column.column if columns is None else columns[column.stream][column.column]
        return replace(column, stream=numbers[column.stream], column=number)

    def moved(expr: Expr) -> Expr:
        if isinstance(expr, Col):
            return placed(expr)
        if isinstance(expr, (Call, Apply)):
            return replace(expr, args=tuple(map(moved, expr.args)))
        return expr

    form = predicate.form
    if form is not None:
        form = replace(form, left=placed(form.left), right=placed(form.right))
    return Predicate(predicate.text, moved(predicate.expr), form)
