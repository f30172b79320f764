"""The pieces of a condition that the compiler looks at, so that Spark is asked for their types at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from sparkshed.sql.collective import recognise
from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.expr import PythonPredicate
from sparkshed.sql.linear import strip

#: Finds a Python predicate by the name that SQL uses.
Lookup = Callable[[str], PythonPredicate | None]

COMPARE: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
CONNECTIVES: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.NEQ, exp.NullSafeNEQ)
CHOICES: tuple[type[exp.Expr], ...] = (exp.Coalesce, exp.Greatest, exp.Least)
BOOLEAN: tuple[type[exp.Expr], ...] = (*CONNECTIVES, exp.Not, exp.Is, exp.In, exp.Between, *COMPARE)

#: What may stand in a call, but is no value on its own.
_NO_ARGUMENTS = (exp.Kwarg, exp.PropertyEQ, exp.Distinct, exp.Lambda, exp.Alias, exp.Star, exp.Ordered)


def pieces(conjunct: Conjunct, node: exp.Expr, lookup: Lookup) -> Iterator[exp.Expr]:
    """Nodes whose types compilation will ask for, so that they can be asked for at once."""
    inner = strip(node)
    streams = conjunct.streams(inner)
    if streams is None:
        return
    if isinstance(inner, exp.If) and isinstance(inner.parent, exp.Case):
        # WHEN … THEN … is no expression of its own.
        for child in inner.iter_expressions():
            yield from pieces(conjunct, child, lookup)
        return
    if len(streams) <= 1:
        yield inner
        if isinstance(inner, (exp.Add, exp.Sub)):
            parts = (inner.this, inner.expression)
            if streams and not all(conjunct.streams(part) for part in parts):
                for part in parts:
                    yield from pieces(conjunct, part, lookup)
        return
    if not isinstance(inner, BOOLEAN):
        yield inner
    for operand in _operands(conjunct, inner, lookup):
        yield from pieces(conjunct, operand, lookup)


def _operands(conjunct: Conjunct, node: exp.Expr, lookup: Lookup) -> list[exp.Expr]:
    """What the compiler looks into; nothing for a node that it leaves to Spark."""
    operands: Sequence[exp.Expr | None] = []
    if isinstance(node, (*CONNECTIVES, *COMPARE, *ARITHMETIC)):
        operands = [node.this, node.expression]
    elif isinstance(node, (exp.Not, exp.Is, exp.Neg, exp.Abs)):
        operands = [node.this]
    elif isinstance(node, (exp.In, *CHOICES)):
        operands = [node.this, *node.expressions]
    elif isinstance(node, exp.Between):
        operands = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, exp.If):
        operands = [node.this, node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Case):
        branches = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
        operands = [node.this, *branches, node.args.get("default")]
    elif (applied := application(node, lookup)) is not None:
        operands = applied[1]
    elif (collective := recognise(conjunct, node)) is not None:
        operands = collective.operands
    return [operand for operand in operands if operand is not None]


def application(node: exp.Expr, lookup: Lookup) -> tuple[PythonPredicate, list[exp.Expr]] | None:
    """The Python predicate that the node calls, and its arguments."""
    if not isinstance(node, exp.Anonymous) or not node.expressions:
        return None
    predicate = lookup(node.name)
    if predicate is None or any(isinstance(argument, _NO_ARGUMENTS) for argument in node.expressions):
        return None
    return predicate, [strip(argument) for argument in node.expressions]
