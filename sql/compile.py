"""Turn conditions over several streams into typed expressions for the engine.

What reads one stream only is computed by Spark below the join, as an input column: its exact
semantics are Spark's own. The engine combines such columns with the operators of
:data:`sparkshed.sql.expr.OPERATORS`.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.inputs import Inputs
from sparkshed.sql.linear import strip
from sparkshed.sql.types import FRACTIONAL, INTEGRAL, decimal_of, is_integral, is_numeric
from sparkshed.sql.typing import Typer, is_evaluated

_COMPARE: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_CONNECTIVES: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.NEQ, exp.NullSafeNEQ)
_CHOICES: tuple[type[exp.Expr], ...] = (exp.Coalesce, exp.Greatest, exp.Least)
_BOOLEAN: tuple[type[exp.Expr], ...] = (*_CONNECTIVES, exp.Not, exp.Is, exp.In, exp.Between, *_COMPARE)


class NotCompiledError(Exception):
    """The condition has a form that only Spark evaluates."""


def pieces(conjunct: Conjunct, node: exp.Expr) -> Iterator[exp.Expr]:
    """Nodes whose types compilation will ask for, so that they can be asked for at once."""
    inner = strip(node)
    streams = conjunct.streams(inner)
    if streams is None:
        return
    if isinstance(inner, exp.If) and isinstance(inner.parent, exp.Case):
        # WHEN … THEN … is no expression of its own.
        for child in inner.iter_expressions():
            yield from pieces(conjunct, child)
        return
    if len(streams) <= 1:
        yield inner
        if isinstance(inner, (exp.Add, exp.Sub)):
            parts = (inner.this, inner.expression)
            if streams and not all(conjunct.streams(part) for part in parts):
                for part in parts:
                    yield from pieces(conjunct, part)
        return
    if not isinstance(inner, _BOOLEAN):
        yield inner
    for operand in _operands(inner):
        yield from pieces(conjunct, operand)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """What the compiler looks into; nothing for a node that it leaves to Spark."""
    operands: list[exp.Expr | None] = []
    if isinstance(node, (*_CONNECTIVES, *_COMPARE, *_ARITHMETIC)):
        operands = [node.this, node.expression]
    elif isinstance(node, (exp.Not, exp.Is, exp.Neg, exp.Abs)):
        operands = [node.this]
    elif isinstance(node, (exp.In, *_CHOICES)):
        operands = [node.this, *node.expressions]
    elif isinstance(node, exp.Between):
        operands = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, exp.If):
        operands = [node.this, node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Case):
        branches = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
        operands = [node.this, *branches, node.args.get("default")]
    return [operand for operand in operands if operand is not None]


class Compiler:
    """Compiles one conjunct; leaves are registered as inputs of their streams."""

    def __init__(
        self, conjunct: Conjunct, typer: Typer, inputs: Inputs, *, ansi: bool, split_sums: bool = False
    ) -> None:
        """With `split_sums`, `b.x + 1` stays a sum over the plain column instead of one input."""
        self._ansi = ansi
        self._conjunct = conjunct
        self._typer = typer
        self._inputs = inputs
        self._split_sums = split_sums

    def compile(self) -> Expr:
        """The conjunct as an expression; raises :class:`NotCompiledError`."""
        return self._boolean(self._conjunct.node, certain=True)

    # Leaves ------------------------------------------------------------------------------------

    def leaf(self, node: exp.Expr, cast: str | None = None) -> Col:
        """An input column computed by Spark, optionally in another type."""
        streams = self._conjunct.streams(node) or frozenset()
        (stream,) = streams
        text, type_ = self._conjunct.text(node), self._type(node)
        if cast is not None and cast != type_:
            text, type_ = f"CAST({text} AS {cast})", cast
        return self._inputs.column(stream, text, type_)

    def _type(self, node: exp.Expr) -> str:
        return self._typer.type_of(self._conjunct.text(node))

    def _literal(self, node: exp.Expr) -> Lit:
        text = self._conjunct.text(node)
        type_ = self._typer.type_of(text)
        if not is_evaluated(type_):
            raise NotCompiledError(text)
        return Lit(self._typer.value_of(text), type_, text)

    def _simple(self, node: exp.Expr, *, certain: bool) -> Expr | None:
        """A constant or an input column, when the node reads at most one stream."""
        inner = strip(node)
        streams = self._conjunct.streams(inner)
        if streams is None:
            raise NotCompiledError(self._conjunct.text(inner))
        if not streams:
            return self._literal(inner)
        if len(streams) > 1:
            return None
        if self._split_sums and isinstance(inner, (exp.Add, exp.Sub)):
            parts = (inner.this, inner.expression)
            if not all(self._conjunct.streams(part) for part in parts):
                return None
        if self._may_fail(inner):
            # Spark meets it only on rows that pass the other conditions; below the join it meets all.
            raise NotCompiledError(self._conjunct.text(inner))
        if not certain and not isinstance(inner, (exp.Column, exp.Dot)):
            # Spark might never reach this piece; computed below the join it could fail for nothing.
            raise NotCompiledError(self._conjunct.text(inner))
        column = self.leaf(inner)
        if not is_evaluated(column.type):
            raise NotCompiledError(column.text)
        return column

    def _may_fail(self, node: exp.Expr) -> bool:
        """Whether computing the node can raise an error in ANSI mode, for some row."""
        if not self._ansi:
            return False
        return any(self._raises(part) for part in node.walk() if self._conjunct.streams(part))

    def _raises(self, node: exp.Expr) -> bool:
        if isinstance(node, (exp.Div, exp.IntDiv, exp.Mod)):
            return bool(self._conjunct.streams(node.expression))
        if isinstance(node, exp.Cast):
            source, target = self._type(node.this), self._type(node)
            widens = is_integral(source) and target == "bigint"
            return not (target == "string" or (is_numeric(source) and target in FRACTIONAL) or widens)
        return isinstance(node, exp.Bracket)

    # Booleans ----------------------------------------------------------------------------------

    def _boolean(self, node: exp.Expr, *, certain: bool) -> Expr:
        node = strip(node)
        simple = self._simple(node, certain=certain)
        if simple is not None:
            if simple.type not in ("boolean", "void"):
                raise NotCompiledError(self._conjunct.text(node))
            return simple
        if isinstance(node, (exp.And, exp.Or)):
            op = "and" if isinstance(node, exp.And) else "or"
            left = self._boolean(node.this, certain=certain)
            return Call(op, (left, self._boolean(node.expression, certain=False)), "boolean")
        if isinstance(node, exp.Not):
            return _negated(self._boolean(node.this, certain=certain))
        if type(node) in _COMPARE:
            return self._compare(_COMPARE[type(node)], node.this, node.expression, certain=certain)
        if isinstance(node, exp.NEQ):
            return _negated(self._compare("=", node.this, node.expression, certain=certain))
        if isinstance(node, exp.NullSafeNEQ):
            return _negated(self._compare("<=>", node.this, node.expression, certain=certain))
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            low = self._compare(">=", node.this, node.args["low"], certain=certain)
            return Call(
                "and", (low, self._compare("<=", node.this, node.args["high"], certain=False)), "boolean"
            )
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Call("isnull", (self._value(node.this, certain=certain),), "boolean")
        if isinstance(node, exp.In) and node.expressions:
            return self._in(node, certain=certain)
        if isinstance(node, (exp.Case, exp.If, exp.Coalesce)):
            return self._value(node, certain=certain)
        raise NotCompiledError(self._conjunct.text(node))

    def _compare(self, op: str, left: exp.Expr, right: exp.Expr, *, certain: bool) -> Expr:
        sides = [strip(left), strip(right)]
        common = self._typer.common_type(*(self._conjunct.text(side) for side in sides))
        if common is None or not is_evaluated(common):
            raise NotCompiledError(self._conjunct.text(left))
        values = tuple(self._cast(self._value(side, certain=certain), common) for side in sides)
        return Call(op, values, "boolean")

    def _in(self, node: exp.In, *, certain: bool) -> Expr:
        subject, type_ = self._conjunct.text(node.this), self._type(node.this)
        for option in node.expressions:
            if self._typer.common_type(subject, self._conjunct.text(option)) != type_:
                raise NotCompiledError(self._conjunct.text(node))
        values = [self._value(node.this, certain=certain)]
        values += [self._cast(self._value(option, certain=False), type_) for option in node.expressions]
        return Call("in", tuple(values), "boolean")

    # Values ------------------------------------------------------------------------------------

    def _value(self, node: exp.Expr, *, certain: bool) -> Expr:
        node = strip(node)
        simple = self._simple(node, certain=certain)
        if simple is not None:
            return simple
        if isinstance(node, _BOOLEAN):
            return self._boolean(node, certain=certain)
        type_ = self._type(node)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(_ARITHMETIC[type(node)], node, type_, certain=certain)
        if isinstance(node, (exp.Neg, exp.Abs)) and is_numeric(type_):
            operand = self._value(node.this, certain=certain)
            return Call("neg" if isinstance(node, exp.Neg) else "abs", (operand,), type_)
        if isinstance(node, _CHOICES):
            arguments = [node.this, *node.expressions]
            op = type(node).__name__.lower()
            return self._choice(op, arguments, type_, certain=certain)
        if isinstance(node, exp.If):
            branches = [(node.this, node.args["true"])]
            return self._case(None, branches, node.args.get("false"), type_, certain=certain)
        if isinstance(node, exp.Case):
            branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
            return self._case(node.this, branches, node.args.get("default"), type_, certain=certain)
        raise NotCompiledError(self._conjunct.text(node))

    def _arithmetic(self, op: str, node: exp.Expr, type_: str, *, certain: bool) -> Expr:
        decimal = decimal_of(type_)
        if not is_numeric(type_) or (decimal is not None and (op in "/%" or decimal[0] >= 38)):
            raise NotCompiledError(self._conjunct.text(node))
        operands = [self._value(part, certain=certain) for part in (node.this, node.expression)]
        if not all(is_numeric(operand.type) for operand in operands):
            raise NotCompiledError(self._conjunct.text(node))
        if decimal is None:
            operands = [self._cast(operand, type_) for operand in operands]
        else:
            operands = [
                self._cast(o, "decimal(20,0)") if is_integral(o.type) else o for o in operands
            ]
        return Call(op, tuple(operands), type_)

    def _choice(self, op: str, arguments: list[exp.Expr], type_: str, *, certain: bool) -> Expr:
        if not is_evaluated(type_):
            raise NotCompiledError(op)
        values = []
        for number, argument in enumerate(arguments):
            needed = certain and (number == 0 or op != "coalesce")
            values.append(self._cast(self._value(argument, certain=needed), type_))
        return Call(op, tuple(values), type_)

    def _case(
        self,
        subject: exp.Expr | None,
        branches: list[tuple[exp.Expr, exp.Expr]],
        default: exp.Expr | None,
        type_: str,
        *,
        certain: bool,
    ) -> Expr:
        if not is_evaluated(type_):
            raise NotCompiledError(type_)
        args: list[Expr] = []
        for number, (condition, value) in enumerate(branches):
            first = certain and number == 0
            if subject is None:
                args.append(self._boolean(condition, certain=first))
            else:
                args.append(self._compare("=", subject, condition, certain=first))
            args.append(self._cast(self._value(value, certain=False), type_))
        if default is None:
            args.append(Lit(None, type_, "NULL"))
        else:
            args.append(self._cast(self._value(default, certain=False), type_))
        return Call("case", tuple(args), type_)

    def _cast(self, value: Expr, type_: str) -> Expr:
        if value.type == type_:
            return value
        if isinstance(value, Lit) and value.value is None:
            return Lit(None, type_, value.text)
        if not (is_numeric(value.type) and is_numeric(type_)):
            raise NotCompiledError(type_)
        if isinstance(value, Lit) and isinstance(value.value, int) and type_ in (*INTEGRAL, "double"):
            return Lit(float(value.value) if type_ == "double" else value.value, type_, value.text)
        return Call("cast", (value,), type_)


def _negated(condition: Expr) -> Expr:
    return Call("not", (condition,), "boolean")
