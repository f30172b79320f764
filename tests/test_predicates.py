"""register_predicate: names, sessions, and the same answer with the hint and without it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.errors import AnalysisException, PythonException

import sparkshed
from sparkshed import predicates
from sparkshed.engine.blocks import is_gridable
from sparkshed.predicates import find_predicate
from sparkshed.spark.catalog import SparkCatalog
from sparkshed.spark.functions import install
from sparkshed.sql.analyse import analyse
from sparkshed.sql.expr import Apply, Call, Col, Lit, columns_of
from sparkshed.sql.outline import outline
from sparkshed.sql.rewrite import Edit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOIN = (
    "SELECT {hint} l.id, r.id FROM left_points l JOIN right_points r "
    "ON {condition} AND l.ts BETWEEN r.ts - INTERVAL 3 SECONDS AND r.ts + INTERVAL 3 SECONDS"
)
HINT = "/*+ SHED(exact) */"


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has its own predicates."""
    monkeypatch.setattr(predicates, "_predicates", {})


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own, because functions stay in a session; nothing is enabled on it."""
    fresh = spark.newSession()
    for name, factor in (("left_points", 7), ("right_points", 5)):
        fresh.range(0, 90, 1, 1).selectExpr(
            "id",
            f"timestamp_seconds(id * {factor} % 61) AS ts",
            f"if(id % 11 = 3, NULL, id * {factor} % 17 / 2.0D) AS x",
            f"CAST(id * {factor} % 13 AS INT) AS n",
            "array(id % 3, NULL) AS l",
        ).createOrReplaceTempView(name)
    yield fresh
    sparkshed.disable(fresh)


def rows(frame: DataFrame) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


def within(limit: float) -> Callable[..., Any]:
    """A function made by another is sent to the workers whole, not by the name of this module."""
    return lambda left, right: np.abs(left - right) < limit


near = within(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2near", near), "letters, digits and underscores, and no digit first, but '2near' was given"),
        (("is near", near), "'is near' was given"),
        (("db.near", near), "'db.near' was given"),
        (("", near), "'' was given"),
        ((7, near), "7 was given"),
        (("near", "x < y"), "predicate `near` needs a function, but got a value of type str"),
        (("near", near, 0), "selectivity of predicate `near` is a number above 0 and at most 1, but 0 was"),
        (("near", near, 1.5), "but 1.5 was given"),
        (("near", near, float("nan")), "but nan was given"),
        (("near", near, "0.1"), "but '0.1' was given"),
        (("near", near, True), "but True was given"),
        (("near", near, None, 0), "cost of predicate `near` is a number above 0, but 0 was given"),
        (("near", near, None, -1), "but -1 was given"),
        (("near", near, None, float("inf")), "but inf was given"),
        (("case", near), r"`case` is a word of SQL.*for example `is_case`"),
        (("NOT", near), "`NOT` is a word of SQL"),
        (("abs", near), "`abs` is a function of Spark, and a predicate of that name would hide it"),
        (("Vector_L2_Distance", near), "`Vector_L2_Distance` is a function of Spark"),
    ],
)
def test_what_cannot_be_registered(spark: SparkSession, arguments: Any, message: str) -> None:
    with pytest.raises(sparkshed.PredicateError, match=message):
        sparkshed.register_predicate(*arguments)
    assert find_predicate(str(arguments[0])) is None


def test_numbers_are_kept() -> None:
    sparkshed.register_predicate("near", near, selectivity=np.float64(0.25), cost=3)
    found = find_predicate("NEAR")
    assert found is not None
    assert (found.name, found.function, found.selectivity, found.cost) == ("near", near, 0.25, 3.0)


def test_a_function_of_spark_registered_before_spark_was_there(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkshed.spark.functions.check_name", lambda name: None)
    sparkshed.register_predicate("levenshtein", near)
    with pytest.raises(sparkshed.PredicateError, match="`levenshtein` is a function of Spark"):
        sparkshed.enable(session)
    sparkshed.enable(session)
    assert session.sql("SELECT levenshtein('a', 'bc')").collect() == [(2,)]


@pytest.mark.parametrize(
    "condition",
    [
        "near(l.x, r.x)",
        "NOT Near(l.x + 1, r.x)",
        "(near(l.x, r.x) OR l.n = r.n)",
        "near(l.n - r.n, 2)",
        "near(l.x, r.x) IS NULL",
    ],
)
def test_the_same_rows_with_the_hint_and_without(session: SparkSession, condition: str) -> None:
    sparkshed.register_predicate("near", lambda left, right: np.abs(left - right) < 1, selectivity=0.1)
    sparkshed.enable(session)
    expected = rows(session.sql(JOIN.format(hint="", condition=condition)))
    assert expected
    assert rows(session.sql(JOIN.format(hint=HINT, condition=condition))) == expected


def test_query_and_explain_install_what_they_need(session: SparkSession) -> None:
    text = JOIN.format(hint=HINT, condition="near(l.x, r.x)")
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        sparkshed.query(session, text)
    sparkshed.register_predicate("near", near)
    assert "near(l.x, r.x)" in sparkshed.explain(session, text, mode="extended")
    other = session.newSession()
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        other.sql("SELECT near(1, 2)")
    plain = session.sql(JOIN.format(hint="", condition="near(l.x, r.x)"))
    assert rows(sparkshed.query(session, text)) == rows(plain)


def test_enabled_sessions_learn_of_it_at_once(session: SparkSession) -> None:
    sparkshed.enable(session)
    child = session.newSession()
    sparkshed.register_predicate("near", near)
    for one in (session, child):
        assert one.range(1).selectExpr("near(1, 1.5D)").collect() == [(True,)]
    sparkshed.disable(child)
    sparkshed.register_predicate("far", lambda left, right: np.abs(left - right) > 9)
    assert session.sql("SELECT far(1, 1.5D)").collect() == [(False,)]
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        child.sql("SELECT far(1, 2)")


def test_registering_again_replaces(session: SparkSession) -> None:
    sparkshed.enable(session)
    results = []
    for limit in (1, 3):
        sparkshed.register_predicate("Near" if limit > 1 else "near", within(limit))
        plain = rows(session.sql(JOIN.format(hint="", condition="near(l.x, r.x)")))
        assert rows(session.sql(JOIN.format(hint=HINT, condition="near(l.x, r.x)"))) == plain
        results.append(plain.total())
    assert 0 < results[0] < results[1]


def test_a_function_that_the_session_has_is_not_replaced(session: SparkSession) -> None:
    session.udf.register("own_one", lambda x, y: True, "boolean")
    try:
        with pytest.raises(sparkshed.PredicateError, match="the session has a function `own_one` already"):
            sparkshed.register_predicate("own_one", lambda x, y: x < y)
            sparkshed.query(session, "SELECT 1").collect()
        assert find_predicate("own_one") is None
        assert session.sql("SELECT own_one(2, 1) AS found").first().found is True
    finally:
        session.sql("DROP TEMPORARY FUNCTION own_one")


def test_an_exception_names_the_predicate_with_the_hint_and_without(session: SparkSession) -> None:
    def broken(left: Any, right: Any) -> Any:
        msg = "no such colour"
        raise LookupError(msg)

    sparkshed.register_predicate("matches", broken)
    sparkshed.enable(session)
    for hint in (HINT, ""):
        frame = session.sql(JOIN.format(hint=hint, condition="matches(l.x, r.x)"))
        with pytest.raises(PythonException, match="predicate `matches` failed: LookupError: no such colour"):
            frame.collect()


def test_a_wrong_answer_names_the_predicate_with_the_hint_and_without(session: SparkSession) -> None:
    sparkshed.register_predicate("difference", lambda left, right: left - right)
    sparkshed.enable(session)
    for hint in (HINT, ""):
        frame = session.sql(JOIN.format(hint=hint, condition="difference(l.x, r.x)"))
        with pytest.raises(PythonException, match="predicate `difference` returned a numpy array of type"):
            frame.collect()


def test_what_a_condition_compiles_to(session: SparkSession) -> None:
    sparkshed.register_predicate("near", near, selectivity=0.1)
    predicate = find_predicate("near")
    install(session)

    def read(condition: str) -> Any:
        text = JOIN.format(hint=HINT, condition=condition)
        found = outline(text)
        assert found is not None
        block = analyse(found.blocks[0], Edit(text), SparkCatalog(session, session.sql))[0]
        assert not block.residual
        (compiled,) = block.predicates
        assert compiled.form is None
        return compiled.expr

    plain = read("near(l.x, r.x)")
    assert isinstance(plain, Apply)
    assert plain.predicate is predicate
    assert [(c.stream, c.text, c.type) for c in columns_of(plain)] == [
        (0, "l.x", "double"),
        (1, "r.x", "double"),
    ]
    negated = read("NOT near(l.x * 2, r.x)")
    assert isinstance(negated, Call)
    assert negated.op == "not"
    assert [column.text for column in columns_of(negated)] == ["l.x * 2", "r.x"]
    constant = read("near(l.n - r.n, 0.5)")
    assert isinstance(constant, Apply)
    assert isinstance(constant.args[0], Call)
    assert isinstance(constant.args[1], Lit)
    assert constant.args[1].type == "decimal(1,1)"
    squared = read("(l.x - r.x) * (l.x - r.x) <= 0.0625")
    assert isinstance(squared, Call)
    assert squared.args[1] == Lit(0.0625, "double", "0.0625")
    assert is_gridable(squared)
    nested = read("near(r.l, array(1)) = near(l.l, r.l)")
    assert [column.type for column in columns_of(nested)] == ["boolean", "array<bigint>", "array<bigint>"]
    brought = read("near(near(l.x, r.x), array(1))")
    assert isinstance(brought, Apply)
    assert isinstance(brought.args[1], Col)
    assert (brought.args[1].stream, brought.args[1].type) == (0, "array<int>")


def test_the_example_of_the_documentation(session: SparkSession) -> None:
    page = (Path(__file__).parents[1] / "docs" / "hint.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for name, view in (("a", "left_points"), ("b", "right_points")):
        session.table(view).selectExpr("id", "ts", "x", "n AS y").createOrReplaceTempView(name)
    sparkshed.enable(session)
    last = "frame = spark.sql"
    names: dict[str, Any] = {"spark": session, "sparkshed": sparkshed}
    exec(example.replace("spark.sql", last), names)
    (text,) = re.findall(r'"""(.*?)"""', example, re.DOTALL)
    expected = rows(session.sql(text.replace(HINT, "")))
    assert expected
    assert rows(names["frame"]) == expected


@pytest.mark.parametrize(
    "condition", ["near(l.x, r.x, NULL)", "near(l.x, r.x, (SELECT max(x) FROM left_points))"]
)
def test_what_is_left_to_spark(session: SparkSession, condition: str) -> None:
    sparkshed.register_predicate("near", near)
    install(session)
    text = JOIN.format(hint=HINT, condition=f"l.n = r.n AND {condition}")
    found = outline(text)
    assert found is not None
    block = analyse(found.blocks[0], Edit(text), SparkCatalog(session, session.sql))[0]
    assert len(block.residual) == 1
