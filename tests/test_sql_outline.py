"""Finding hinted blocks and their clauses, without Spark."""

from __future__ import annotations

import pytest

from sparkshed.sql.errors import HintError, StatementError
from sparkshed.sql.outline import Block, Outline, Span, outline

H = "/*+ SHED(exact) */"


def found(text: str) -> Outline:
    result = outline(text)
    assert result is not None
    return result


def cut(text: str, span: Span | None) -> str | None:
    return None if span is None else text[span.start : span.end]


def only(text: str) -> Block:
    (block,) = found(text).blocks
    return block


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT /*+ BROADCAST(a) */ * FROM a JOIN b ON a.k = b.k",
        "SELECT '/*+ SHED(exact) */' FROM a",
        "SELECT `/*+ SHED(exact) */` FROM a",
        "SELECT 1 -- /*+ SHED(exact) */",
        "SELECT 1 /* /*+ SHED(exact) */ */",
    ],
)
def test_statements_without_the_hint_are_sparks(text: str) -> None:
    assert outline(text) is None


def test_clauses() -> None:
    text = f"SELECT {H} a.x, b.y FROM a JOIN b ON a.k = b.k WHERE a.x > 1 GROUP BY a.x HAVING x > 2 LIMIT 3"
    block = only(text)
    assert cut(text, block.select) == "a.x, b.y"
    assert cut(text, block.from_) == "a JOIN b ON a.k = b.k"
    assert cut(text, block.where) == "a.x > 1"
    assert cut(text, block.where_clause) == "WHERE a.x > 1"
    assert cut(text, block.hint_span) == H
    assert cut(text, block.span) == text


@pytest.mark.parametrize(
    ("text", "from_", "where"),
    [
        (f"SELECT {H} 1 FROM a, b", "a, b", None),
        (f"SELECT {H} 1 FROM a, b WHERE x = 1 -- end", "a, b", "x = 1"),
        (f"SELECT {H} 1 FROM a, b ORDER BY 1", "a, b", None),
        (f"SELECT {H} 1 FROM a, b GROUP /* x */ BY 1", "a, b", None),
        (f"SELECT {H} 1 FROM a, b LATERAL VIEW explode(a.l) t AS z WHERE z > 1", "a, b", "z > 1"),
        (f"SELECT {H} a.x IS DISTINCT FROM b.x FROM a, b", "a, b", None),
        (f"SELECT {H} extract(DAY FROM ts) FROM a, b", "a, b", None),
        (f"SELECT {H} * EXCEPT (x) FROM a, b", "a, b", None),
        (f"SELECT {H} `from`, `where` FROM a, b", "a, b", None),
        (f"SELECT {H} a.from FROM a, b WHERE a.limit > 1", "a, b", "a.limit > 1"),
        (f"SELECT {H} 1 FROM a, b WHERE offset > 1 OR limit = 2 LIMIT 3", "a, b", "offset > 1 OR limit = 2"),
        (f"SELECT {H} 1 FROM a, b WHERE x = 1 WINDOW w AS (PARTITION BY x)", "a, b", "x = 1"),
        (f"SELECT {H} 1 FROM (SELECT y WHERE z UNION p) WHERE x", "(SELECT y WHERE z UNION p)", "x"),
        (f"SELECT {H} 1 FROM a, b WHERE x IN (SELECT 1 LIMIT 1)", "a, b", "x IN (SELECT 1 LIMIT 1)"),
        (f"SELECT {H} 1 FROM a, b |> WHERE x", "a, b", None),
    ],
)
def test_where_clauses_end(text: str, from_: str, where: str | None) -> None:
    block = only(text)
    assert (cut(text, block.from_), cut(text, block.where)) == (from_, where)


@pytest.mark.parametrize("operator", ["UNION ALL", "EXCEPT", "INTERSECT", "MINUS"])
def test_set_operations_end_a_block(operator: str) -> None:
    text = f"SELECT {H} 1 FROM a, b {operator} SELECT 2 FROM c"
    assert cut(text, only(text).span) == f"SELECT {H} 1 FROM a, b"


def test_inner_blocks_come_first() -> None:
    text = f"SELECT {H} 1 FROM (SELECT {H} 2 FROM a, b) x, c WHERE y IN (SELECT {H} 3 FROM d, e)"
    assert [cut(text, block.select) for block in found(text).blocks] == ["2", "3", "1"]


def test_visible_common_table_expressions() -> None:
    text = (
        f"WITH p AS (SELECT 1), q (i) AS (WITH z AS (SELECT 2) SELECT {H} 3 FROM p, z), r AS (SELECT 4) "
        f"SELECT {H} 5 FROM q, r"
    )
    inner, outer = found(text).blocks
    assert [cut(text, span) for span in inner.ctes] == ["p AS (SELECT 1)", "z AS (SELECT 2)"]
    assert len(outer.ctes) == 3


@pytest.mark.parametrize(
    ("head", "kind"),
    [("", "query"), ("INSERT INTO t ", "command"), ("CREATE TABLE t USING parquet AS ", "command")],
)
def test_kinds(head: str, kind: str) -> None:
    assert found(f"{head}SELECT {H} 1 FROM a, b;").kind == kind


def test_temp_view() -> None:
    head = "CREATE OR REPLACE GLOBAL TEMP VIEW v (i COMMENT 'first AS', `h h`) COMMENT 'x' AS"
    text = f"{head} SELECT {H} 1, 2 FROM a, b"
    result = found(text)
    assert result.kind == "temp view"
    assert result.view is not None
    assert (result.view.name, result.view.replace, result.view.is_global) == ("v", True, True)
    assert result.view.columns == (("i", "first AS"), ("h h", None))
    assert cut(text, result.body) == f"SELECT {H} 1, 2 FROM a, b"


@pytest.mark.parametrize(
    ("head", "mode"),
    [("EXPLAIN", "simple"), ("explain extended", "extended"), ("EXPLAIN FORMATTED", "formatted"), ("", None)],
)
def test_explain(head: str, mode: str | None) -> None:
    text = f"{head} SELECT {H} 1 FROM a, b"
    result = found(text)
    assert result.explain == mode
    assert cut(text, result.body) == f"SELECT {H} 1 FROM a, b"


def test_hints_beside() -> None:
    text = f"SELECT /*+ BROADCAST(a) */ {H} /*+ COALESCE(1) */ 1 FROM a, b"
    assert cut(text, only(text).hint_span) == H


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"SELECT 1 {H} FROM a, b", StatementError),
        (f"SELECT 1 FROM a {H} JOIN b ON x", StatementError),
        (f"SELECT {H} {H} 1 FROM a, b", HintError),
        (f"SELECT {H} 1", StatementError),
        (f"CREATE VIEW v AS SELECT {H} 1 FROM a, b", StatementError),
        (f"CREATE TEMP VIEW x.v AS SELECT {H} 1 FROM a, b", StatementError),
        (f"SELECT 1; SELECT {H} 1 FROM a, b", StatementError),
        (f"WITH RECURSIVE r AS (SELECT 1) SELECT {H} 1 FROM a, r", StatementError),
        (f"EXPLAIN COST SELECT {H} 1 FROM a, b", StatementError),
        (f"SELECT {H} 'open FROM a, b", StatementError),
    ],
)
def test_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        outline(text)
