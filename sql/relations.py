"""Read the FROM clause: relations, join conditions, USING; only inner joins pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparkshed.sql.catalog import Catalog
from sparkshed.sql.conjuncts import Conjunct, split
from sparkshed.sql.errors import JoinError, PredicateError, StatementError
from sparkshed.sql.scope import Fragment, Relation, Scope


@dataclass(frozen=True)
class _Item:
    """A relation of FROM and how it joins what stands before it."""

    node: exp.Expr
    join: exp.Join | None


def read_from(
    from_text: str, where_text: str | None, with_: str, catalog: Catalog
) -> tuple[Scope, list[Conjunct]]:
    """The block's relations with Spark's schemas, and all its conditions as conjuncts."""
    where = f" WHERE {where_text}" if where_text else ""
    fragment = Fragment(f"SELECT 1 FROM {from_text}{where}")
    tree = fragment.tree
    first = tree.args["from_"].this
    items = list(_items(first, None, tree.args.get("joins") or [], fragment))
    if len(items) < 2:
        msg = (
            f"SHED hint on a SELECT without a join: FROM {' '.join(from_text.split())}. "
            f"Join two or more relations, or remove the hint."
        )
        raise StatementError(msg)
    relations = [_relation(item.node, fragment, with_, catalog) for item in items]
    scope = Scope(relations, case_sensitive=catalog.case_sensitive)
    conjuncts: list[Conjunct] = []
    for number, item in enumerate(items):
        if item.join is not None:
            conjuncts += _join_conditions(item.join, number, fragment, scope)
    if where_text:
        condition = tree.args["where"].this
        conjuncts += split(condition, fragment, scope, range(len(items)), "WHERE")
    return scope, conjuncts


def _items(
    node: exp.Expr, join: exp.Join | None, joins: list[exp.Join], fragment: Fragment
) -> Iterator[_Item]:
    """Relations in the order they are written; brackets around inner joins make no difference."""
    inner = node
    while isinstance(inner, exp.Subquery) and isinstance(inner.this, (exp.Table, exp.Subquery)):
        if inner.alias:
            if inner.this.args.get("joins"):
                msg = f"a bracketed join with an alias is not supported: {fragment.cut(inner)}. Remove the alias."
                raise JoinError(msg)
            break
        if inner.args.get("joins"):
            break
        inner = inner.this
    nested = list(inner.args.get("joins") or [])
    yield _Item(inner, join)
    for each in [*nested, *joins]:
        _check_join(each, fragment)
        yield from _items(each.this, each, [], fragment)


def _check_join(join: exp.Join, fragment: Fragment) -> None:
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
    if isinstance(node, (exp.Lateral, exp.Unnest)) or node.args.get("pivots"):
        msg = f"`{text}` depends on the relations before it. Put it in a sub-query, or around the hinted SELECT."
        raise JoinError(msg)
    name = _name(node)
    if not name:
        msg = f"the relation {' '.join(text.split())} has no name. Give it an alias: {' '.join(text.split())} AS a."
        raise JoinError(msg)
    if isinstance(node, exp.Table) and not node.alias and isinstance(node.this, exp.Identifier):
        qualifier = tuple(part.name for part in node.parts)
    else:
        qualifier = (name,)
    return Relation(name, text, qualifier, catalog.schema(f"{with_}SELECT * FROM {text}"))


def _join_conditions(join: exp.Join, number: int, fragment: Fragment, scope: Scope) -> list[Conjunct]:
    visible = range(number + 1)
    on = join.args.get("on")
    using = [column.name for column in join.args.get("using") or []]
    if join.args.get("method") == "NATURAL":
        using = scope.natural_columns(number)
    found: list[Conjunct] = []
    for left, right in scope.add_using(using, number):
        equal = Fragment(f"SELECT 1 WHERE {left} = {right}")
        found += split(equal.tree.args["where"].this, equal, scope, visible, "USING")
    if on is None:
        return found
    found += split(on, fragment, scope, visible, "ON")
    links = [streams is None or len(streams) > 1 for streams in (c.streams() for c in found)]
    if not any(links):
        name = scope.relations[number].name
        msg = (
            f"the condition ON {' '.join(fragment.cut(on).split())} links `{name}` to nothing. Compare its "
            f"columns with another relation's, or write CROSS JOIN and put all conditions into WHERE."
        )
        raise PredicateError(msg)
    return found
