"""Differences of two streams: the form that time bounds and bands share.

`a.x <= b.x + 1`, `abs(a.x - b.x) <= 1` and `a.ts - b.ts < INTERVAL 5 SECONDS` are all

    positive term - negative term + constants  <=  0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkshed.sql.conjuncts import Conjunct

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.EQ: "=",
}


@dataclass(frozen=True)
class Difference:
    """`positive - negative + Σ constants  op  0`, op one of `<`, `<=`, `=`.

    `subtracts` tells that the SQL subtracts one stream from the other itself.
    """

    positive: exp.Expr
    negative: exp.Expr
    constants: tuple[tuple[int, exp.Expr], ...]
    operator: str
    subtracts: bool

    @property
    def strict(self) -> bool:
        """Whether equality is excluded."""
        return self.operator == "<"


def strip(node: exp.Expr) -> exp.Expr:
    """The node without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def comparison(node: exp.Expr) -> tuple[str, exp.Expr, exp.Expr] | None:
    """Operator and sides of a comparison, turned so that it reads `<`, `<=` or `=`."""
    node = strip(node)
    operator = _COMPARISONS.get(type(node))
    if operator is None:
        return None
    left, right = node.this, node.expression
    if operator in (">", ">="):
        return _FLIPPED[operator], right, left
    return operator, left, right


class _Terms:
    """Collects signed terms of `left - right`."""

    def __init__(self, conjunct: Conjunct) -> None:
        self.conjunct = conjunct
        self.signed: list[tuple[int, exp.Expr]] = []
        self.subtracts = False

    def add(self, node: exp.Expr, sign: int) -> None:
        inner = strip(node)
        streams = self.conjunct.streams(inner) or frozenset()
        if isinstance(inner, (exp.Add, exp.Sub)) and streams:
            parts = (inner.this, inner.expression)
            reads = [self.conjunct.streams(part) for part in parts]
            if len(streams) > 1 or not all(reads):
                self.subtracts = self.subtracts or (all(map(bool, reads)) and len(streams) > 1)
                self.add(parts[0], sign)
                self.add(parts[1], -sign if isinstance(inner, exp.Sub) else sign)
                return
        if isinstance(inner, exp.Neg) and len(streams) > 1:
            self.add(inner.this, -sign)
            return
        self.signed.append((sign, inner))


def differences(conjunct: Conjunct) -> Iterator[Difference]:
    """Differences that together say the same as the conjunct; none when it has another form.

    `greatest(…)` on the positive side and `least(…)` on the negative one stand for all their
    arguments; see :func:`is_compact` for what that means for NULLs.
    """
    sides = comparison(conjunct.node)
    if sides is None:
        return
    operator, left, right = sides
    inner = strip(left)
    if isinstance(inner, exp.Abs) and not conjunct.streams(right) and operator != "=":
        found = list(_of_sides(conjunct, operator, inner.this, right))
        found += _of_sides(conjunct, operator, None, right, negated=inner.this)
        if len(found) == 2:
            yield from found
        return
    yield from _of_sides(conjunct, operator, left, right)


def _of_sides(
    conjunct: Conjunct,
    operator: str,
    left: exp.Expr | None,
    right: exp.Expr,
    negated: exp.Expr | None = None,
) -> Iterator[Difference]:
    terms = _Terms(conjunct)
    if left is not None:
        terms.add(left, 1)
    if negated is not None:
        terms.add(negated, -1)
    terms.add(right, -1)
    constants = tuple((sign, node) for sign, node in terms.signed if not conjunct.streams(node))
    moving = [(sign, node) for sign, node in terms.signed if conjunct.streams(node)]
    if sorted(sign for sign, _ in moving) != [-1, 1]:
        return
    positive = next(node for sign, node in moving if sign == 1)
    negative = next(node for sign, node in moving if sign == -1)
    whole = Difference(positive, negative, constants, operator, terms.subtracts)
    yield from _expanded(conjunct, whole)


def _expanded(conjunct: Conjunct, whole: Difference) -> Iterator[Difference]:
    """Replace greatest/least by their arguments, pair by pair."""
    ups = _arguments(whole.positive, exp.Greatest)
    downs = _arguments(whole.negative, exp.Least)
    if len(ups) == 1 and len(downs) == 1:
        streams = [conjunct.streams(node) for node in (whole.positive, whole.negative)]
        if all(reads is not None and len(reads) == 1 for reads in streams) and streams[0] != streams[1]:
            yield whole
        return
    if whole.operator == "=":
        return
    found = []
    for up in ups:
        for down in downs:
            terms = _Terms(conjunct)
            terms.add(up, 1)
            terms.add(down, -1)
            moving = {sign: node for sign, node in terms.signed if conjunct.streams(node)}
            constants = tuple((sign, node) for sign, node in terms.signed if not conjunct.streams(node))
            if set(moving) != {1, -1} or len(terms.signed) != 2 + len(constants):
                return
            streams = [conjunct.streams(node) for node in moving.values()]
            if any(reads is None or len(reads) != 1 for reads in streams):
                return
            found.append(
                replace(
                    whole,
                    positive=moving[1],
                    negative=moving[-1],
                    constants=whole.constants + constants,
                )
            )
    yield from found


def _arguments(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    return [node.this, *node.expressions] if isinstance(node, kind) else [node]


def is_compact(conjunct: Conjunct) -> bool:
    """Whether the conjunct uses greatest/least, which skip NULLs where comparisons do not."""
    return conjunct.node.find(exp.Greatest, exp.Least) is not None
