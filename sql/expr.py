"""Typed expressions: what the engine evaluates for each candidate combination of rows.

The front end turns SQL text into these nodes once; planner, EXPLAIN and engine only read them.
Operands are already coerced the way Spark coerces them: both sides of a comparison have the same
type, and every node carries Spark's result type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    "overlap": "size of the intersection of two arrays, as array_intersect makes it",
    "inner_product": "vector_inner_product of two arrays of floats",
    "cosine_similarity": "vector_cosine_similarity of two arrays of floats",
    "l2_distance": "vector_l2_distance of two arrays of floats",
    "dot": "sum of the products of two arrays of doubles; NULL if an element is NULL or has no partner",
    "squared_distance": "sum of the squared differences of two arrays of doubles, likewise",
    "map_dot": "sum of the products over the keys that two maps share, in the order of the first",
}

#: Operators over whole arrays or maps; their operands are columns.
COLLECTIVE = (
    "overlap",
    "inner_product",
    "cosine_similarity",
    "l2_distance",
    "dot",
    "squared_distance",
    "map_dot",
)


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


@dataclass(frozen=True, slots=True)
class PythonPredicate:
    """A vectorised Python function that SQL may call by name.

    `selectivity` is the share of pairs it is expected to accept (None: measure it on a sample), `cost`
    what one evaluation costs, in units of a comparison.
    """

    name: str
    function: Callable[..., object]
    selectivity: float | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """A Python predicate applied to its operands; NULL where an operand is."""

    predicate: PythonPredicate
    args: tuple[Expr, ...]
    type: str = "boolean"


Expr = Col | Lit | Call | Apply


def columns_of(expr: Expr) -> Iterator[Col]:
    """Every column that the expression reads, in order of appearance."""
    if isinstance(expr, Col):
        yield expr
    elif isinstance(expr, (Call, Apply)):
        for arg in expr.args:
            yield from columns_of(arg)


def streams_of(expr: Expr) -> frozenset[int]:
    """Numbers of the streams that the expression reads."""
    return frozenset(column.stream for column in columns_of(expr))
