"""Typed expressions: what the engine evaluates for each candidate combination of rows.

The front end turns SQL text into these nodes once; planner, EXPLAIN and engine only read them.
Operands are already coerced the way Spark coerces them: both sides of a comparison have the same
type, and every node carries Spark's result type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: Operators of :class:`Call` and what they compute. All follow SQL's three-valued logic.
OPERATORS = {
    "and": "conjunction of two or more booleans",
    "or": "disjunction of two or more booleans",
    "not": "negation",
    "=": "equal; NaN equals NaN, -0.0 equals 0.0",
    "<=>": "equal, with NULL equal to NULL; never NULL itself",
    "<": "less; NaN is the largest value, strings compare by bytes",
    "<=": "less or equal",
    ">": "greater",
    ">=": "greater or equal",
    "isnull": "whether the operand is NULL",
    "in": "whether the first operand equals one of the others",
    "+": "sum in the node's type",
    "-": "difference in the node's type",
    "*": "product in the node's type",
    "/": "quotient; doubles only",
    "%": "remainder with the sign of the dividend",
    "neg": "negated number",
    "abs": "absolute value",
    "cast": "conversion between number types, to the node's type",
    "case": "condition, value, condition, value, …, otherwise",
    "coalesce": "first operand that is not NULL",
    "greatest": "largest operand, NULLs skipped",
    "least": "smallest operand, NULLs skipped",
}


@dataclass(frozen=True, slots=True)
class Col:
    """Input column number `column` of stream number `stream`."""

    stream: int
    column: int
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant in its physical form.

    Timestamps and day-time intervals are microseconds, dates are days, decimals are
    :class:`decimal.Decimal`; NULL is None.
    """

    value: object
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operator of :data:`OPERATORS` applied to its operands."""

    op: str
    args: tuple[Expr, ...]
    type: str

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            msg = f"unknown operator {self.op!r}"
            raise ValueError(msg)


Expr = Col | Lit | Call


def columns_of(expr: Expr) -> Iterator[Col]:
    """Every column that the expression reads, in order of appearance."""
    if isinstance(expr, Col):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from columns_of(arg)


def streams_of(expr: Expr) -> frozenset[int]:
    """Numbers of the streams that the expression reads."""
    return frozenset(column.stream for column in columns_of(expr))
