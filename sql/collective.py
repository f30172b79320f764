"""Recognise functions of two arrays or two maps, one of each stream.

====================================================================  ==================
written                                                               operator
====================================================================  ==================
`size(array_intersect(l, r))`, `cardinality(…)`, `array_size(…)`      overlap
`vector_inner_product(l, r)`                                          inner_product
`vector_cosine_similarity(l, r)`                                      cosine_similarity
`vector_l2_distance(l, r)`                                            l2_distance
`aggregate(zip_with(l, r, (x, y) -> x * y), 0D, (s, v) -> s + v)`     dot
the same with `(x, y) -> (x - y) * (x - y)`                           squared_distance
`aggregate(map_values(map_zip_with(l, r, (k, x, y) ->                 map_dot
coalesce(x * y, 0D))), 0D, (s, v) -> s + v)`
====================================================================  ==================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.linear import strip
from sparkshed.sql.types import FRACTIONAL, is_numeric
from sparkshed.sql.typing import Typer, is_key_type

_VECTORS = {
    "vector_inner_product": "inner_product",
    "vector_cosine_similarity": "cosine_similarity",
    "vector_l2_distance": "l2_distance",
}
_SIZES = ("size", "cardinality", "array_size")

#: Functions that the forms are written with, as far as the parser has no nodes for them.
FUNCTIONS = frozenset((*_VECTORS, "cardinality", "zip_with", "map_values", "map_zip_with"))

_MAP_OF_DOUBLES = ("map<", ",double>")


@dataclass(frozen=True, slots=True)
class Collective:
    """An operator over two whole arrays or maps, as it was written.

    `start` is what a sum starts from, and `default` what a product with a missing partner is; only
    zeros make the operator. `common` is the node whose type both operands are converted to.
    """

    op: str
    type: str
    left: exp.Expr
    right: exp.Expr
    common: exp.Expr | None = None
    start: exp.Expr | None = None
    default: exp.Expr | None = None
    null_has_size: bool = False

    @property
    def operands(self) -> tuple[exp.Expr, ...]:
        """Nodes whose types and values decide whether it is the operator."""
        nodes = (self.left, self.right, self.common, self.start, self.default)
        return tuple(node for node in nodes if node is not None)

    def operand_type(self, conjunct: Conjunct, typer: Typer) -> str | None:
        """The type that both operands get; None when only Spark computes the function on theirs."""
        types = [typer.type_of(conjunct.text(node)) for node in (self.left, self.right)]
        if self.common is not None:
            types = [typer.type_of(conjunct.text(self.common))] * 2
        fits = types[0] == types[1] and _is_operand(self.op, types[0]) and self._adds_nothing(conjunct, typer)
        return types[0] if fits else None

    def _adds_nothing(self, conjunct: Conjunct, typer: Typer) -> bool:
        """Whether the constants of the sum are zeros."""
        if self.start is not None:
            text = conjunct.text(self.start)
            if typer.type_of(text) != "double" or not _is_plus_zero(typer.value_of(text)):
                return False
        if self.default is not None:
            text = conjunct.text(self.default)
            # A sum that starts from 0.0 is the same with -0.0 as with 0.0.
            return is_numeric(typer.type_of(text)) and typer.value_of(text) == 0
        return True


def _is_operand(op: str, type_: str) -> bool:
    if op == "overlap":
        return type_.startswith("array<") and is_key_type(type_[len("array<") : -1])
    if op == "map_dot":
        before, after = _MAP_OF_DOUBLES
        if not (type_.startswith(before) and type_.endswith(after)):
            return False
        key = type_[len(before) : -len(after)]
        # Spark finds keys by their Java equality, for which -0.0 is not 0.0.
        return key not in FRACTIONAL and is_key_type(key)
    return type_ == ("array<double>" if op in ("dot", "squared_distance") else "array<float>")


def _is_plus_zero(value: object) -> bool:
    return isinstance(value, float) and value == 0 and math.copysign(1, value) > 0


def recognise(conjunct: Conjunct, node: exp.Expr) -> Collective | None:
    """The function of two arrays or maps that the node is, if it takes them from two streams."""
    found = _size(conjunct, node) or _vectors(node) or _sum(node)
    if found is None:
        return None
    if any(node.find(exp.Identifier) for node in (found.start, found.default) if node is not None):
        return None  # a column or a variable, not a constant
    reads = [conjunct.streams(side) for side in (found.left, found.right)]
    if any(streams is None or len(streams) != 1 for streams in reads) or reads[0] == reads[1]:
        return None
    return found


def _size(conjunct: Conjunct, node: exp.Expr) -> Collective | None:
    if isinstance(node, exp.ArraySize):
        # The tree does not tell size() from array_size().
        name, inner = conjunct.fragment.cut(node).partition("(")[0].strip(" `\n\t").lower(), strip(node.this)
    elif isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        name, inner = node.name.lower(), strip(node.expressions[0])
    else:
        return None
    if name not in _SIZES or not isinstance(inner, exp.ArrayIntersect) or len(inner.expressions) != 2:
        return None
    left, right = map(strip, inner.expressions)
    return Collective("overlap", "int", left, right, common=inner, null_has_size=name != "array_size")


def _vectors(node: exp.Expr) -> Collective | None:
    called = _called(node, 2)
    if called is None or called[0] not in _VECTORS:
        return None
    left, right = map(strip, called[1])
    return Collective(_VECTORS[called[0]], "float", left, right)


def _sum(node: exp.Expr) -> Collective | None:
    """`aggregate(products, 0D, (s, v) -> s + v)` over the products of two arrays or maps."""
    if not isinstance(node, exp.Reduce) or node.args.get("finish") is not None:
        return None
    start, merge = node.args.get("initial"), node.args.get("merge")
    if start is None or merge is None or not _adds(merge):
        return None
    terms = strip(node.this)
    called = _called(terms, 3)
    if called is not None and called[0] == "zip_with":
        left, right, pairing = map(strip, called[1])
        op = _pairing(pairing)
        return None if op is None else Collective(op, "double", left, right, start=strip(start))
    called = _called(terms, 1)
    if called is None or called[0] != "map_values":
        return None
    called = _called(strip(called[1][0]), 3)
    if called is None or called[0] != "map_zip_with":
        return None
    left, right, pairing = map(strip, called[1])
    default = _product_or_default(pairing)
    if default is None:
        return None
    return Collective("map_dot", "double", left, right, start=strip(start), default=default)


def _called(node: exp.Expr, arguments: int) -> tuple[str, Sequence[exp.Expr]] | None:
    """Name and arguments of a function that the parser has no node for."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != arguments:
        return None
    return node.name.lower(), node.expressions


def _variables(node: exp.Expr, count: int) -> list[str] | None:
    """Variables of a lambda function with so many of them."""
    if not isinstance(node, exp.Lambda) or len(node.expressions) != count:
        return None
    return [variable.name for variable in node.expressions]


def _are(nodes: tuple[exp.Expr, exp.Expr], names: list[str]) -> bool:
    """Whether the nodes are the two variables, in either order."""
    sides = [strip(node) for node in nodes]
    return all(isinstance(side, exp.Identifier) for side in sides) and (
        sorted(side.name for side in sides) == sorted(names)
    )


def _adds(node: exp.Expr) -> bool:
    """`(s, v) -> s + v`, or `v + s`, which is the same number."""
    names = _variables(node, 2)
    body = strip(node.this)
    return names is not None and isinstance(body, exp.Add) and _are((body.this, body.expression), names)


def _pairing(node: exp.Expr) -> str | None:
    """What `(x, y) -> …` makes of two elements, as an operator on the whole arrays."""
    names = _variables(node, 2)
    body = strip(node.this)
    if names is None or not isinstance(body, exp.Mul):
        return None
    if _are((body.this, body.expression), names):
        return "dot"
    factors = strip(body.this), strip(body.expression)
    if not all(isinstance(f, exp.Sub) and _are((f.this, f.expression), names) for f in factors):
        return None
    first, second = (strip(factor.this).name for factor in factors)
    return "squared_distance" if first == second else None


def _product_or_default(node: exp.Expr) -> exp.Expr | None:
    """The default in `(k, x, y) -> coalesce(x * y, default)`."""
    names = _variables(node, 3)
    body = strip(node.this)
    if names is None or not isinstance(body, exp.Coalesce) or len(body.expressions) != 1:
        return None
    product = strip(body.this)
    if not isinstance(product, exp.Mul) or not _are((product.this, product.expression), names[1:]):
        return None
    return strip(body.expressions[0])
