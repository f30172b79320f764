"""Joins that share one buffer, in batch: one operator, no more rows than its limit, and who cannot share."""

from __future__ import annotations

from collections import Counter

import pytest
from golden.views import make_views

import sparkshed
from sparkshed.sql.errors import PlanError
from sparkshed.sql.outline import outline
from sparkshed.sql.sharing import unions

W = "abs(a.ts - b.ts) <= INTERVAL 10 SECONDS"
LIMIT = "/*+ SHED(gdj, 'memory=12', 'seed=1') */"
ON_K = f"SELECT {LIMIT} a.id, b.id FROM a JOIN b ON a.k = b.k AND {W}"
ON_N = f"SELECT {LIMIT} a.id, b.id FROM a JOIN b ON a.n = b.n AND {W}"
OWN = "its own, because "
NOBODY = OWN + "no other join that could share one is a branch of the same UNION ALL"


@pytest.fixture(scope="module")
def session(spark):
    make_views(spark)
    return spark


def rows(frame) -> Counter:
    return Counter(map(tuple, frame.collect()))


@pytest.fixture(scope="module")
def answer(session) -> Counter:
    """What both joins give without hints, which Spark ignores."""
    return rows(session.sql(f"{ON_K} UNION ALL {ON_N}"))


def buffers(session, text: str) -> list[str]:
    """What EXPLAIN says of the buffer of each join."""
    lines = sparkshed.explain(session, text).split("\n")
    return [line.strip().removeprefix("Buffer: ") for line in lines if "Buffer: " in line]


@pytest.mark.parametrize("strategy", ["gdj", "prob", "age", "lru", "fifo", "rand"])
def test_a_part_of_both_joins_in_one_operator(session, answer, strategy):
    text = f"{ON_K} UNION ALL {ON_N}".replace("gdj", strategy)
    frame = sparkshed.query(session, text)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FlatMapGroupsInArrow") == 1
    found = rows(frame)
    assert Counter() < found < answer
    assert rows(frame) == found


def test_each_branch_keeps_its_own_rows(session):
    text = f"{ON_K} UNION ALL {ON_N}".replace("b.id FROM", "b.id, 'k' AS why FROM", 1).replace(
        "b.id FROM", "b.id, 'n' FROM"
    )
    found, whole = rows(sparkshed.query(session, text)), rows(session.sql(text))
    assert found < whole
    assert {why for *_, why in found} == {"k", "n"}


def test_without_aliases_and_hints_of_sparks(session):
    text = "SELECT /*+ BROADCAST(a), SHED(gdj, 'memory=9000') */ a.id FROM a JOIN b ON a.k = b.k AND " + W
    both = f"{text} UNION ALL {text.replace('a.k = b.k', 'a.s = b.s')}"
    assert buffers(session, both) == ["shared with join 2", "shared with join 1"]
    assert rows(sparkshed.query(session, both)) == rows(session.sql(both))


def test_a_view_of_both(session, answer):
    sparkshed.query(session, f"CREATE OR REPLACE TEMP VIEW of_both (i, h) AS {ON_K} UNION ALL {ON_N}")
    assert Counter() < rows(session.table("of_both")) < answer


def test_values_of_a_statement(session):
    text = f"{ON_K} AND a.id > ? UNION ALL {ON_N} AND a.id > ?"
    frame = sparkshed.query(session, text.replace("memory=12", "memory=9000"), args=[5, 5])
    assert rows(frame) == rows(session.sql(text, args=[5, 5]))


def test_three_joins_of_which_two_share(session):
    other = ON_N.replace("memory=12", "memory=13")
    assert buffers(session, f"{ON_K} UNION ALL {other} UNION ALL {ON_N}") == [
        "shared with join 3",
        OWN + "its strategy or options are not those of join 1",
        "shared with join 1",
    ]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (ON_N.replace("memory=12", "memory=13"), "its strategy or options are not those of join 1"),
        (ON_N.replace("gdj", "lru"), "its strategy or options are not those of join 1"),
        (
            f"SELECT {LIMIT} a.id, c.id FROM a JOIN c ON a.n = c.n AND a.ts = c.ts",
            "its relations are not those of join 1",
        ),
        (f"{ON_N} WHERE a.id > 3", "its filters on single relations are not those of join 1"),
        (ON_N.replace(".ts", ".ts2"), "its times are not those of join 1"),
    ],
)
def test_joins_that_do_not_go_together(session, second, reason):
    first = reason.replace("join 1", "join 2")
    assert buffers(session, f"{ON_K} UNION ALL {second}") == [OWN + first, OWN + reason]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (ON_N.replace("gdj", "grubjoin"), "`grubjoin` limits the work of each join, too"),
        (ON_N.replace(" a.id,", " DISTINCT a.id,"), "its SELECT has DISTINCT"),
        (f"({ON_N} LIMIT 3)", "its SELECT has a limit of its own"),
        (f"({ON_N} ORDER BY 1)", "its SELECT has an order of its own"),
        (ON_N.replace("b.id FROM", "count(*) FROM") + " GROUP BY a.id", "its SELECT has aggregates"),
        (ON_N.replace("b.id FROM", "rank() OVER (ORDER BY b.id) FROM"), "its SELECT has window functions"),
        (
            ON_N.replace("b.id FROM", "z FROM") + " LATERAL VIEW explode(a.l) t AS z",
            "its SELECT has a generator",
        ),
        (
            ON_N.replace("a.id, b.id FROM", "a.id AS i, i + 1 FROM"),
            "its select list is not a list of expressions over the join alone",
        ),
        (
            ON_N.replace("'seed", "'buffers=proportional', 'seed"),
            "`buffers=proportional` gives each stream a buffer",
        ),
        (
            ON_N.replace("'seed", "'diffuse=hash:2', 'seed"),
            "`diffuse=hash` sends rows where the key of one join says",
        ),
        (f"{ON_N} WHERE a.id NOT IN (SELECT id FROM c)", "a condition has a sub-query"),
        (
            ON_N.replace("JOIN b", "JOIN (SELECT * FROM b WHERE rand() < 0.5) b"),
            "`b` is not deterministic, so each join reads other rows",
        ),
    ],
)
def test_joins_that_cannot_share(session, second, reason):
    assert buffers(session, f"{ON_K} UNION ALL {second}") == [NOBODY, OWN + reason]


def test_joins_elsewhere_in_a_statement(session):
    assert buffers(session, f"{ON_K} UNION {ON_N}") == [NOBODY, NOBODY]
    assert buffers(session, f"SELECT * FROM ({ON_K}) UNION ALL {ON_N}") == [NOBODY, NOBODY]
    assert buffers(session, ON_K) == []
    exact = ON_N.replace(LIMIT, "/*+ SHED(exact) */")
    assert buffers(session, f"{ON_K} UNION ALL {exact}") == []


def test_what_one_of_the_joins_cannot_do_is_an_error(session):
    text = f"{ON_K} UNION ALL {ON_N.replace('a.n = b.n', 'a.n < b.n')}".replace("gdj", "prob")
    with pytest.raises(PlanError, match="policy `prob` counts equal values, and no equality links"):
        sparkshed.query(session, text)
    few = f"{ON_K} UNION ALL {ON_N}".replace("memory=12", "memory=1")
    with pytest.raises(PlanError, match="too little: a join of 2 streams needs one row of each"):
        sparkshed.query(session, few)


def groups(text: str) -> list[list[int]]:
    found = outline(text)
    assert found is not None
    return unions(found.blocks)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{k} UNION ALL {n}", [[0, 1]]),
        ("{k} UNION ALL SELECT 1, 2 UNION ALL {n} ORDER BY 1 LIMIT 5", [[0, 1]]),
        ("(({k})) UNION ALL ({n})", [[0, 1]]),
        ("WITH x AS (SELECT 1) {k} UNION ALL {n};", [[0, 1]]),
        ("INSERT INTO TABLE t {k} UNION ALL {n}", [[0, 1]]),
        ("SELECT * FROM ({k} UNION ALL {n}) u WHERE id > 3", [[0, 1]]),
        ("({k} UNION ALL {n}) UNION ALL {k} UNION ALL {n}", [[0, 1], [2, 3]]),
        ("{k} UNION ALL SELECT * FROM ({n} UNION ALL {k}) UNION ALL {n}", [[1, 2], [0, 3]]),
        ("{k} UNION {n}", [[0], [1]]),
        ("{k} UNION ALL {n} EXCEPT {k}", [[0], [1], [2]]),
        ("{k} UNION ALL {n} |> LIMIT 3", [[0], [1]]),
        ("SELECT * FROM ({k}) UNION ALL {n}", [[0], [1]]),
        ("SELECT * FROM ({k}) x JOIN ({n}) y ON x.id = y.id", [[0], [1]]),
    ],
)
def test_branches_of_one_union_all(text, expected):
    assert groups(text.format(k=ON_K, n=ON_N)) == expected


def test_the_order_of_a_union_is_not_that_of_its_last_branch():
    text = f"{ON_K} UNION ALL {ON_N} WHERE a.id > 2 ORDER BY 1 LIMIT 5"
    found = outline(text)
    assert found is not None
    last = found.blocks[-1].span
    assert text[last.start : last.end].endswith("WHERE a.id > 2")
