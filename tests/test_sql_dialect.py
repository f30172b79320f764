"""Spark's dialect: streaming relations, and spans that cut the right text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sparkshed.sql.errors import StatementError
from sparkshed.sql.scope import Fragment


@pytest.mark.parametrize(
    ("relation", "name", "alias"),
    [
        ("STREAM t", "t", ""),
        ("stream t AS x", "t", "x"),
        ("STREAM db.t x", "t", "x"),
        ("STREAM(t)", "t", ""),
        ("STREAM(db.t) AS x", "t", "x"),
        ("STREAM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS", "t", ""),
        ("STREAM t WATERMARK ts DELAY OF INTERVAL '1' MINUTE AS x", "t", "x"),
        ("STREAM(t) WATERMARK s.ts DELAY OF INTERVAL 2 MINUTES x", "t", "x"),
    ],
)
def test_streaming_relations(relation: str, name: str, alias: str) -> None:
    fragment = Fragment(f"SELECT 1 FROM {relation} JOIN b ON t.k = b.k")
    table = fragment.tree.args["from_"].this
    assert table.meta["stream"]
    assert (table.name, table.alias) == (name, alias)
    assert fragment.cut(table) == relation
    (join,) = fragment.tree.args["joins"]
    assert fragment.cut(join.args["on"]) == "t.k = b.k"


@pytest.mark.parametrize("relation", ["stream", "watermark", "t stream", "t watermark"])
def test_plain_relations_of_those_names(relation: str) -> None:
    table = Fragment(f"SELECT 1 FROM {relation}").tree.args["from_"].this
    assert "stream" not in table.meta


def test_watermark_needs_a_delay() -> None:
    with pytest.raises(StatementError, match="DELAY OF"):
        Fragment("SELECT 1 FROM STREAM t WATERMARK ts AS x")


@pytest.mark.parametrize(
    "relation",
    [
        "a",
        "db.a",
        "a AS x",
        "a x",
        "`a b` AS `x y`",
        "(SELECT * FROM a WHERE k > 1) AS x",
        "(SELECT 1 UNION SELECT 2) x (i)",
        "VALUES (1, 2), (3, 4) AS v(i, h)",
        "(VALUES (1), (2)) AS v(i)",
        "range(5, 30) r",
        "a TABLESAMPLE (5 PERCENT) AS x",
    ],
)
def test_spans_of_relations(relation: str) -> None:
    fragment = Fragment(f"SELECT 1 FROM {relation} JOIN {relation} ON p = q WHERE z")
    assert fragment.cut(fragment.tree.args["from_"].this) == relation
    assert fragment.cut(fragment.tree.args["joins"][0].this) == relation


@pytest.mark.parametrize(
    "condition",
    [
        "a.x = b.x",
        "a.x + 1 <= (b.x - 2) * 3",
        "NOT a.p",
        "a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts + INTERVAL '1:30' MINUTE TO SECOND",
        "a.x IN (1, 2, b.x)",
        "a.x NOT IN (SELECT x FROM c)",
        "EXISTS (SELECT 1 FROM c WHERE c.x = a.x)",
        "a.x IS NOT NULL",
        "a.s LIKE 'x%' ESCAPE '!'",
        "CASE a.x WHEN 1 THEN b.x ELSE 2 END > 3",
        "CAST(a.x AS DECIMAL(10, 2)) = b.m",
        "a.x::int = b.x",
        "a.l[0].f = b.m['k']",
        "date_add(a.d, b.k) > b.d",
        "timestampdiff(SECOND, a.ts, b.ts) < 3",
        "exists(a.l, x -> x > b.k)",
        "a.s || b.s = 'q'",
        "- a.x < ~ b.x",
        "a.x > :low",
        "a.x > ?",
        "trim(BOTH 'x' FROM a.s) = b.s",
        "a.r.u.v.w = b.`odd ``name`",
        "f(a.x, /* here */ b.x) = 1",
    ],
)
def test_spans_of_conditions(condition: str) -> None:
    fragment = Fragment(f"SELECT 1 FROM a JOIN b ON {condition} WHERE ({condition}) AND true")
    assert fragment.cut(fragment.tree.args["joins"][0].args["on"]) == condition
    where = fragment.tree.args["where"].this
    assert fragment.cut(where.this) == f"({condition})"
    assert fragment.cut(where.this.this) == condition
    for column in where.find_all(exp.Column):
        assert fragment.cut(column).replace("`", "").split(".")[0] == column.parts[0].name


def test_spans_of_arguments() -> None:
    fragment = Fragment("SELECT 1 WHERE f(NULL, true, a.x, 'x', 1, :p, (NULL), -1)")
    call = fragment.tree.args["where"].this
    texts = [fragment.cut(argument) for argument in call.expressions]
    assert texts == ["NULL", "true", "a.x", "'x'", "1", ":p", "(NULL)", "-1"]


def test_a_predicate_is_a_call_whatever_other_dialects_mean_by_its_name() -> None:
    text = "SELECT 1 WHERE Minhash(a.x, b.x) AND `minhash`(a.x)"
    condition = Fragment(text, lambda name: name.lower() == "minhash").tree.args["where"].this
    for call in (condition.this, condition.expression):
        assert isinstance(call, exp.Anonymous)
        assert call.name.lower() == "minhash"
    assert isinstance(Fragment("SELECT 1 WHERE minhash(5, a.x)").tree.args["where"].this, exp.AggFunc)


def test_a_join_without_on_has_none() -> None:
    (join,) = Fragment("SELECT 1 FROM a INNER JOIN b WHERE a.ts = b.ts").tree.args["joins"]
    assert join.args.get("on") is None


@pytest.mark.parametrize("text", ["SELECT 1 FROM a JOIN", "SELECT 1 WHERE x = = 1", "INSERT INTO t VALUES 1"])
def test_unreadable(text: str) -> None:
    with pytest.raises(StatementError, match="cannot be read"):
        Fragment(text)
