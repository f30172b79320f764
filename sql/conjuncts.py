"""Split conditions into conjuncts, and say which streams each one reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparkshed.sql.dialect import span_of
from sparkshed.sql.scope import Fragment, Scope, column_parts, columns_in, quoted

_OPAQUE = (exp.Select, exp.SetOperation, exp.AggFunc, exp.Window, exp.Explode)

_COMPARING = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


@dataclass(frozen=True)
class Conjunct:
    """One condition that must be true of every result.

    `streams` is None when it cannot be told what it reads (a sub-query, an outer reference):
    then only Spark can evaluate it, above the join.
    """

    node: exp.Expr
    fragment: Fragment
    scope: Scope
    visible: tuple[int, ...]
    origin: str

    def streams(self, node: exp.Expr | None = None) -> frozenset[int] | None:
        """Streams that the node, or the whole conjunct, reads."""
        node = self.node if node is None else node
        if node.find(*_OPAQUE):
            return None
        found = set()
        for column in columns_in(node, self.scope.fold):
            reference = self.scope.resolve(column_parts(column), self.visible)
            if reference is None:
                return None
            found.add(reference.relation)
        return frozenset(found)

    def text(self, node: exp.Expr | None = None) -> str:
        """Text of the node with every column under its relation's name."""
        node = self.node if node is None else node
        if node.meta.get("made"):
            return f"{self.text(node.this)} {node.meta['made']} {self.text(node.expression)}"
        start, end = span_of(node)
        source, pieces, at = self.fragment.text, [], start
        for column in sorted(columns_in(node, self.scope.fold), key=span_of):
            reference = self.scope.resolve(column_parts(column), self.visible)
            if reference is None:
                continue
            first, last = span_of(column)
            name = self.scope.qualified(reference.relation, reference.field.name)
            pieces += [source[at:first], name, *(f".{quoted(part)}" for part in reference.nested)]
            at = last
        return "".join([*pieces, source[at:end]])

    def plain_text(self) -> str:
        """Text as the user wrote it, for messages and plans."""
        if self.node.meta.get("made"):
            operator = self.node.meta["made"]
            return f"{self.fragment.cut(self.node.this)} {operator} {self.fragment.cut(self.node.expression)}"
        return " ".join(self.fragment.cut(self.node).split())


def chains_comparisons(node: exp.Expr) -> bool:
    """Whether a comparison is an operand of another without brackets, as in `a = b < c`.

    Spark reads such chains from left to right; the tree here may have them the other way round.
    """
    return any(
        isinstance(operand, _COMPARING)
        for comparing in node.find_all(*_COMPARING)
        for operand in (comparing.this, comparing.args.get("expression"))
    )


def split(
    node: exp.Expr, fragment: Fragment, scope: Scope, visible: Collection[int], origin: str
) -> Iterator[Conjunct]:
    """Conjuncts of a condition; BETWEEN over several streams becomes two comparisons."""
    if isinstance(node, exp.Paren) and isinstance(node.this, (exp.And, exp.Paren, exp.Between)):
        yield from split(node.this, fragment, scope, visible, origin)
        return
    if isinstance(node, exp.And):
        yield from split(node.this, fragment, scope, visible, origin)
        yield from split(node.expression, fragment, scope, visible, origin)
        return
    conjunct = Conjunct(node, fragment, scope, tuple(visible), origin)
    streams = conjunct.streams()
    if isinstance(node, exp.Between) and not node.args.get("symmetric") and streams and len(streams) > 1:
        for kind, operator, end in ((exp.GTE, ">=", "low"), (exp.LTE, "<=", "high")):
            half = kind(this=node.this.copy(), expression=node.args[end].copy())
            half.meta["made"] = operator
            yield Conjunct(half, fragment, scope, tuple(visible), origin)
        return
    yield conjunct
