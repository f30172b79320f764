"""Turn conditions over several streams into typed expressions for the engine.

What reads one stream only is computed by Spark below the join, as an input column: its exact
semantics are Spark's own. The engine combines such columns with the operators of
:data:`sparkshed.sql.expr.OPERATORS`.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from sparkshed.sql.catalog import Catalog
from sparkshed.sql.collective import Collective, recognise
from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.expr import Apply, Call, Col, Expr, Lit, PythonPredicate
from sparkshed.sql.inputs import Inputs
from sparkshed.sql.linear import strip
from sparkshed.sql.pieces import ARITHMETIC, BOOLEAN, CHOICES, COMPARE, application
from sparkshed.sql.types import FRACTIONAL, INTEGRAL, decimal_of, is_evaluated, is_integral, is_numeric
from sparkshed.sql.typing import Typer

#: Digits up to which Spark negates a decimal without rounding it.
_UNROUNDED = 34
#: Nodes that can raise an error in ANSI mode.
_FAILING = (exp.Div, exp.IntDiv, exp.Mod, exp.Cast, exp.Bracket)


class NotCompiledError(Exception):
    """The condition has a form that only Spark evaluates."""


class Compiler:
    """Compiles one conjunct; leaves are registered as inputs of their streams."""

    def __init__(
        self, conjunct: Conjunct, typer: Typer, inputs: Inputs, catalog: Catalog, *, split_sums: bool = False
    ) -> None:
        """With `split_sums`, `b.x + 1` stays a sum over the plain column instead of one input."""
        self._catalog = catalog
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
        column = self._input(inner, certain=certain)
        if not is_evaluated(column.type):
            raise NotCompiledError(column.text)
        return column

    def _input(self, node: exp.Expr, *, certain: bool, cast: str | None = None) -> Col:
        """An input column of any type, if Spark may compute it below the join."""
        if self._may_fail(node):
            # Spark meets it only on rows that pass the other conditions; below the join it meets all.
            raise NotCompiledError(self._conjunct.text(node))
        if not certain and not isinstance(node, (exp.Column, exp.Dot)):
            # Spark might never reach this piece; computed below the join it could fail for nothing.
            raise NotCompiledError(self._conjunct.text(node))
        return self.leaf(node, cast)

    def _may_fail(self, node: exp.Expr) -> bool:
        """Whether computing the node can raise an error in ANSI mode, for some row."""
        if not self._catalog.ansi:
            return False
        return any(self._raises(part, within=node) for part in node.walk())

    def _raises(self, node: exp.Expr, within: exp.Expr) -> bool:
        if _in_lambda(node, within):
            # Variables have no type to ask Spark for; only constants are known not to fail.
            return isinstance(node, _FAILING) and not isinstance(node.this, exp.Literal)
        if not self._conjunct.streams(node):
            return False
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
        if type(node) in COMPARE:
            return self._compare(COMPARE[type(node)], node.this, node.expression, certain=certain)
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
        if isinstance(node, (exp.Case, exp.If, exp.Coalesce, exp.Anonymous)):
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
        if isinstance(node, BOOLEAN):
            return self._boolean(node, certain=certain)
        applied = application(node, self._catalog.predicate)
        if applied is not None:
            return self._apply(*applied, certain=certain)
        collective = recognise(self._conjunct, node)
        if collective is not None:
            return self._collective(collective, certain=certain)
        type_ = self._type(node)
        if type(node) in ARITHMETIC:
            return self._arithmetic(ARITHMETIC[type(node)], node, type_, certain=certain)
        if isinstance(node, (exp.Neg, exp.Abs)) and is_numeric(type_):
            decimal = decimal_of(type_)
            if decimal is not None and decimal[0] > _UNROUNDED:
                raise NotCompiledError(self._conjunct.text(node))
            operand = self._value(node.this, certain=certain)
            return Call("neg" if isinstance(node, exp.Neg) else "abs", (operand,), type_)
        if isinstance(node, CHOICES):
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

    def _apply(self, predicate: PythonPredicate, arguments: list[exp.Expr], *, certain: bool) -> Expr:
        values = tuple(self._argument(argument, certain=certain) for argument in arguments)
        return Apply(predicate, values)

    def _argument(self, node: exp.Expr, *, certain: bool) -> Expr:
        """What a Python predicate reads; unlike other operands it may be an array, a map or a struct."""
        streams = self._conjunct.streams(node)
        if streams is None or len(streams) > 1:
            return self._value(node, certain=certain)
        type_ = self._type(node)
        nested = type_.startswith(("array<", "map<", "struct<"))
        if type_ == "void" or not (nested or is_evaluated(type_)):
            raise NotCompiledError(self._conjunct.text(node))
        if streams:
            return self._input(node, certain=certain)
        if not nested:
            return self._literal(node)
        # The engine has no nested constants, so a stream brings it with each row.
        owner = min(self._conjunct.streams() or ())
        return self._inputs.column(owner, self._conjunct.text(node), type_)

    def _collective(self, found: Collective, *, certain: bool) -> Expr:
        type_ = found.operand_type(self._conjunct, self._typer)
        if type_ is None:
            raise NotCompiledError(self._conjunct.text(found.left))
        sides = tuple(self._input(side, certain=certain, cast=type_) for side in (found.left, found.right))
        call = Call(found.op, sides, found.type)
        if found.null_has_size and self._catalog.null_has_size:
            return Call("coalesce", (call, Lit(-1, "int", "-1")), "int")
        return call

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
            operands = [self._cast(o, "decimal(20,0)") if is_integral(o.type) else o for o in operands]
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
        if isinstance(value, Lit) and isinstance(value.value, (int, Decimal)) and type_ == "double":
            # 0.5 is a decimal in SQL; here it is a constant that needs no conversion for every pair of rows.
            return Lit(float(value.value), type_, value.text)
        if isinstance(value, Lit) and isinstance(value.value, int) and type_ in INTEGRAL:
            return Lit(value.value, type_, value.text)
        return Call("cast", (value,), type_)


def _in_lambda(node: exp.Expr, within: exp.Expr) -> bool:
    """Whether a lambda function stands around the node, inside the other node."""
    while node is not within and node.parent is not None:
        node = node.parent
        if isinstance(node, exp.Lambda):
            return True
    return False


def _negated(condition: Expr) -> Expr:
    return Call("not", (condition,), "boolean")
