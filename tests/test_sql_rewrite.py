"""Editing text, and what becomes of names once the join is replaced, without Spark."""

from __future__ import annotations

import pytest

from sparkshed.sql.block import JoinBlock, Payload, Stream
from sparkshed.sql.catalog import Field
from sparkshed.sql.hint import ShedHint
from sparkshed.sql.outline import Span, outline
from sparkshed.sql.rewrite import Edit, Source, needed_columns, rewrite_block
from sparkshed.sql.scope import Relation, Scope

H = "/*+ SHED(exact) */"
ALL = "`a`.`id`, `a`.`k`, `a`.`x`, `b`.`k`, `b`.`y`, `b`.`id`"
VIEW = "LATERAL VIEW explode(l) t AS z"


def scope_of(*using: str) -> Scope:
    relations = [
        Relation(
            "a", "db.a", "db.a", ("db", "a"), (Field("id", "int"), Field("k", "int"), Field("x", "int"))
        ),
        Relation("b", "b", "b", ("b",), (Field("k", "int"), Field("y", "int"), Field("id", "int"))),
    ]
    scope = Scope(relations, case_sensitive=False)
    if using:
        scope.add_using(using, 1)
    return scope


def rewritten(text: str, *using: str, residual: tuple[str, ...] = ()) -> str:
    """The statement after its only block is replaced; what stands for the join is shown as `…`."""
    found = outline(text)
    assert found is not None
    (block,) = found.blocks
    scope, edit = scope_of(*using), Edit(text)
    streams = tuple(
        Stream(r.name, r.text, r.source, (), (), 0, f"{r.name}.id", False, (Payload("id", 0),))
        for r in scope.relations
    )
    joined = JoinBlock(ShedHint("exact"), "", streams, (), (), residual, True)
    rewrite_block(block, edit, joined, scope, Source("v", "v"))
    join = "v, LATERAL (SELECT v.__shed_0_0 AS `id`) AS `a`, LATERAL (SELECT v.__shed_1_0 AS `id`) AS `b`"
    result = edit.render(Span(0, len(text)))
    assert join in result
    return " ".join(result.replace(join, "…").split())


def test_edit() -> None:
    edit = Edit("one two three")
    edit.replace(Span(4, 7), "2")
    edit.replace(Span(0, 3), "1")
    assert edit.render(Span(0, 13)) == "1 2 three"
    assert edit.render(Span(4, 13)) == "2 three"
    assert edit.render_without(Span(0, 13), Span(0, 4)) == "2 three"
    edit.replace(Span(0, 7), "both")
    assert edit.render(Span(0, 13)) == "both three"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"SELECT {H} a.x FROM db.a, b WHERE a.k = b.k", "SELECT a.x FROM …"),
        (f"SELECT {H} *, 1 FROM db.a, b", f"SELECT {ALL}, 1 FROM …"),
        (f"SELECT {H} * EXCEPT (id, b.k) FROM db.a, b", "SELECT `a`.`k`, `a`.`x`, `b`.`y` FROM …"),
        (f"SELECT {H} a.*, count(*) FROM db.a, b", "SELECT a.*, count(*) FROM …"),
        (f"SELECT {H} 2 * a.x, (SELECT * FROM c) FROM db.a, b", "SELECT 2 * a.x, (SELECT * FROM c) FROM …"),
        (f"SELECT {H} db.a.x FROM db.a, b ORDER BY DB.A.X", "SELECT `a`.`x` FROM … ORDER BY `a`.`x`"),
        (f"SELECT {H} db.a.* FROM db.a, b", "SELECT `a`.`id`, `a`.`k`, `a`.`x` FROM …"),
        (f"SELECT {H} db.f(x) FROM db.a, b LIMIT 3;", "SELECT db.f(x) FROM … LIMIT 3;"),
        ("SELECT /*+ SHED(exact), MERGE(a) */ x FROM db.a, b", "SELECT /*+ MERGE(a) */ x FROM …"),
    ],
)
def test_names(before: str, after: str) -> None:
    assert rewritten(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT {H} k, b.k FROM", "SELECT `a`.`k`, b.k FROM …"),
        ("SELECT {H} * FROM", "SELECT `a`.`k`, `a`.`id`, `a`.`x`, `b`.`y`, `b`.`id` FROM …"),
        ("SELECT {H} b.*, 1 FROM", "SELECT `b`.`k`, `b`.`y`, `b`.`id`, 1 FROM …"),
        ("SELECT {H} a.* EXCEPT (x) FROM", "SELECT `a`.`k`, `a`.`id` FROM …"),
        ("SELECT {H} x k, y AS k FROM", "SELECT x k, y AS k FROM …"),
        ("SELECT {H} max(k) k, k(1), 'k' FROM", "SELECT max(`a`.`k`) k, k(1), 'k' FROM …"),
        ("SELECT {H} (SELECT k FROM c) FROM", "SELECT (SELECT k FROM c) FROM …"),
    ],
)
def test_using(before: str, after: str) -> None:
    assert rewritten(f"{before.format(H=H)} db.a JOIN b USING (k)", "k") == after


@pytest.mark.parametrize(
    ("select", "tail", "after"),
    [
        ("k", "GROUP BY k HAVING k > 1 ORDER BY k", "GROUP BY `a`.`k` HAVING k > 1 ORDER BY k"),
        ("x AS k", "ORDER BY k", "ORDER BY k"),
        ("x", "ORDER BY k", "ORDER BY `a`.`k`"),
        ("k AS k", "GROUP BY k", "GROUP BY `a`.`k`"),
        ("k", "QUALIFY max(x) OVER (ORDER BY k) = 1", "QUALIFY max(x) OVER (ORDER BY `a`.`k`) = 1"),
    ],
)
def test_using_after_the_join(select: str, tail: str, after: str) -> None:
    text = rewritten(f"SELECT {H} {select} FROM db.a JOIN b USING (k) {tail}", "k")
    assert text.partition("… ")[2] == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("FROM db.a, b", "WHERE (p) AND (q)"),
        ("FROM db.a, b WHERE z LIMIT 3", "WHERE (p) AND (q) LIMIT 3"),
        ("FROM db.a, b GROUP BY x", "WHERE (p) AND (q) GROUP BY x"),
        (f"FROM db.a, b {VIEW} ORDER BY 1", f"{VIEW} WHERE (p) AND (q) ORDER BY 1"),
        (f"FROM db.a, b {VIEW} WHERE z", f"{VIEW} WHERE (p) AND (q)"),
    ],
)
def test_residual_conditions(text: str, after: str) -> None:
    assert rewritten(f"SELECT {H} 1 {text}", residual=("p", "q")) == f"SELECT 1 FROM … {after}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT {H} a.x FROM db.a, b", [["x"], []]),
        ("SELECT {H} count(*) FROM db.a, b", [[], []]),
        ("SELECT {H} * FROM db.a, b", [["id", "k", "x"], ["k", "y", "id"]]),
        ("SELECT {H} b.* FROM db.a, b ORDER BY `X`", [["x"], ["k", "y", "id"]]),
        ("SELECT {H} 1 FROM db.a, b WHERE a.x = b.y GROUP BY y", [[], ["y"]]),
    ],
)
def test_needed_columns(text: str, names: list[list[str]]) -> None:
    text = text.format(H=H)
    found = outline(text)
    assert found is not None
    needed = needed_columns(found.blocks[0], Edit(text), scope_of(), [])
    assert [[field.name for field in fields] for fields in needed] == names


def test_star_and_natural_columns() -> None:
    scope = scope_of()
    assert scope.natural_columns(1) == ["id", "k"]
    scope.add_using(["id", "k"], 1)
    assert [(n, field.name) for n, field in scope.star()] == [(0, "id"), (0, "k"), (0, "x"), (1, "y")]
    assert [field.name for field in scope.relation_star(1)] == ["id", "k", "y"]


@pytest.mark.parametrize(
    ("name", "relation", "nested"),
    [
        ("a.x", 0, ()),
        ("db.a.x", 0, ()),
        ("A.X.f", 0, ("f",)),
        ("y", 1, ()),
        ("y.f.g", 1, ("f", "g")),
        ("k", None, ()),
        ("c.x", None, ()),
        ("other.a.x", None, ()),
    ],
)
def test_resolution(name: str, relation: int | None, nested: tuple[str, ...]) -> None:
    reference = scope_of().resolve(name.split("."), range(2))
    assert (None if reference is None else reference.relation) == relation
    assert reference is None or reference.nested == nested
