"""What a join needs of its rows: expressions to evaluate, words to compare, columns to keep."""

from __future__ import annotations

from collections.abc import Iterator

from sparkshed.engine.decode import is_text
from sparkshed.planner.physical import BandKernel, Hop, JoinSpec, VectorKernel, WeightedKernel
from sparkshed.sql.expr import Apply, Call, Col, Expr, columns_of


def conditions(spec: JoinSpec) -> Iterator[Expr]:
    """Every expression that is evaluated, also those that a kernel falls back on."""
    for hop in _hops(spec):
        kernel = hop.kernel
        own = kernel.predicates if isinstance(kernel, BandKernel) else ()
        if isinstance(kernel, (WeightedKernel, VectorKernel)):
            own = (kernel.predicate,)
        for predicate in (*hop.checks, *own):
            yield predicate.expr


def compared_words(expr: Expr) -> Iterator[Col]:
    """Columns of words that are computed with; those that a Python predicate reads stay in Arrow."""
    if isinstance(expr, Col):
        if is_text(expr.type):
            yield expr
    elif isinstance(expr, (Call, Apply)):
        for arg in expr.args:
            if not (isinstance(expr, Apply) and isinstance(arg, Col)):
                yield from compared_words(arg)


def _hops(spec: JoinSpec) -> list[Hop]:
    """The hops of all joins."""
    return [hop for join in spec.joins for hop in join.every_hop]


def used_columns(spec: JoinSpec) -> list[set[int]]:
    """Columns that the output, a kernel or a check reads, by stream."""
    used: list[set[int]] = [set() for _ in spec.streams]
    for output in spec.output:
        used[output.stream].add(output.column)
    for hop in _hops(spec):
        columns = [column for check in hop.checks for column in columns_of(check.expr)]
        for form in hop.kernel.forms:
            columns += [form.left, form.right]
        for column in columns:
            used[column.stream].add(column.column)
    return used
