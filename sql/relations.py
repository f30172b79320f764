"""Read the FROM clause: relations, join conditions, USING; only inner joins pass."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sparkshed.sql.catalog import Catalog
from sparkshed.sql.conjuncts import Conjunct, split
from sparkshed.sql.dialect import tokenize
from sparkshed.sql.errors import JoinError, PredicateError, StatementError
from sparkshed.sql.scope import Fragment, Relation, Scope


@dataclass(frozen=True)
class _Link:
    """A join, and the numbers of the relations on its sides; its ON sees no others."""

    join: exp.Join
    left: range
    right: range

    @property
    def visible(self) -> range:
        """All relations that ON can name."""
        return range(self.left.start, self.right.stop)


def read_from(
    from_text: str, where_text: str | None, with_: str, catalog: Catalog
) -> tuple[Scope, list[Conjunct]]:
    """The block's relations with Spark's schemas, and all its conditions as conjuncts."""
    where = f" WHERE {where_text}" if where_text else ""
    fragment = Fragment(f"SELECT 1 FROM {from_text}{where}", lambda name: catalog.predicate(name) is not None)
    tree = fragment.tree
    first = tree.args["from_"].this
    nodes: list[exp.Expr] = []
    links: list[_Link] = []
    _collect(first, tree.args.get("joins") or [], fragment, nodes, links)
    if len(nodes) < 2:
        msg = (
            f"SHED hint on a SELECT without a join: FROM {' '.join(from_text.split())}. "
            f"Join two or more relations, or remove the hint."
        )
        raise StatementError(msg)
    relations = [_relation(node, fragment, with_, catalog) for node in nodes]
    scope = Scope(relations, case_sensitive=catalog.case_sensitive)
    conjuncts: list[Conjunct] = []
    for link in links:
        conjuncts += _join_conditions(link, fragment, scope)
    if where_text:
        condition = tree.args["where"].this
        conjuncts += split(condition, fragment, scope, range(len(nodes)), "WHERE")
    return scope, conjuncts


def _collect(
    node: exp.Expr, joins: list[exp.Join], fragment: Fragment, nodes: list[exp.Expr], links: list[_Link]
) -> None:
    """Gather relations and joins in the order they are written, also from inside brackets."""
    start = len(nodes)
    inner = node
    while isinstance(inner, exp.Subquery) and isinstance(inner.this, (exp.Table, exp.Subquery)):
        if inner.alias:
            if inner.this.args.get("joins"):
                text = " ".join(fragment.cut(inner).split())
                msg = f"a bracketed join with an alias is not supported: {text}. Remove the alias."
                raise JoinError(msg)
            break
        if inner.args.get("joins"):
            break
        inner = inner.this
    nested = list(inner.args.get("joins") or [])
    nodes.append(inner)
    for join in [*nested, *joins]:
        _check_join(join)
        right = len(nodes)
        _collect(join.this, [], fragment, nodes, links)
        links.append(_Link(join, range(start, right), range(right, len(nodes))))


def _check_join(join: exp.Join) -> None:
    side, kind = join.args.get("side") or "", join.args.get("kind") or ""
    method = join.args.get("method") or ""
    if side or kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
        name = " ".join(word for word in (method, side, kind) if word)
        msg = (
            f"SHED joins are inner joins, but {name} JOIN was found before `{_name(join.this)}`. "
            f"A shed row could not be told from one without a partner. Use JOIN, or put the {name} JOIN "
            f"around the hinted SELECT."
        )
        raise JoinError(msg)


def _name(node: exp.Expr) -> str:
    return str(node.alias_or_name)


def _relation(node: exp.Expr, fragment: Fragment, with_: str, catalog: Catalog) -> Relation:
    text = fragment.cut(node)
    if node.args.get("pivots"):
        msg = f"PIVOT inside a join is not supported: {' '.join(text.split())}. Put it in a sub-query."
        raise JoinError(msg)
    if isinstance(node, (exp.Lateral, exp.Unnest)):
        msg = (
            f"`{' '.join(text.split())}` depends on the relations before it. "
            f"Put it in a sub-query, or around the hinted SELECT."
        )
        raise JoinError(msg)
    name = _name(node)
    if not name:
        shown = " ".join(text.split())
        msg = f"the relation {shown} has no name. Give it an alias: {shown} AS t."
        raise JoinError(msg)
    if isinstance(node, exp.Table) and not node.alias and isinstance(node.this, exp.Identifier):
        qualifier = tuple(part.name for part in node.parts)
    else:
        qualifier = (name,)
    source = without_alias(text, str(node.alias))
    return Relation(name, text, source, qualifier, catalog.schema(f"{with_}SELECT * FROM {text}"))


def without_alias(text: str, alias: str) -> str:
    """A relation by what it reads, with single spaces.

    >>> without_alias("STREAM  t AS x", "x"), without_alias("t x", "x"), without_alias("STREAM t", "")
    ('STREAM t', 't', 'STREAM t')
    """
    tokens = tokenize(text)
    words = [text[token.start : token.end + 1] for token in tokens]
    named = [at for at, token in enumerate(tokens) if alias and at and token.text == alias]
    if named:
        first = named[-1] - (tokens[named[-1] - 1].token_type == TokenType.ALIAS)
        del words[first : named[-1] + 1]
    return " ".join(words)


def _join_conditions(link: _Link, fragment: Fragment, scope: Scope) -> list[Conjunct]:
    join, number = link.join, link.right.start
    on = join.args.get("on")
    using = [column.name for column in join.args.get("using") or []]
    if using or join.args.get("method") == "NATURAL":
        if link.left.start or len(link.right) > 1:
            msg = (
                f"USING and NATURAL JOIN are not supported together with a bracketed join on the right, "
                f"as before `{scope.relations[number].name}`. "
                f"Remove the brackets, or write the condition with ON."
            )
            raise JoinError(msg)
        using = using or scope.natural_columns(number)
    found: list[Conjunct] = []
    for left, right in scope.add_using(using, number):
        equal = Fragment(f"SELECT 1 WHERE {left} = {right}")
        found += split(equal.tree.args["where"].this, equal, scope, link.visible, "USING")
    if on is None:
        return found
    found += split(on, fragment, scope, link.visible, "ON")
    linking = [streams is None or len(streams) > 1 for streams in (c.streams() for c in found)]
    if not any(linking):
        name = scope.relations[number].name
        msg = (
            f"the condition ON {' '.join(fragment.cut(on).split())} links `{name}` to nothing. Compare its "
            f"columns with another relation's, or write CROSS JOIN and put all conditions into WHERE."
        )
        raise PredicateError(msg)
    return found
