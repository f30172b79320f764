"""enable, disable, query, explain: the public face, on a real session."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

import sparkshed
from sparkshed.spark.workers import check_sources, check_workers

JOIN = (
    "SELECT {hint} l.id AS left_id, r.id AS right_id FROM left_rows l JOIN right_rows r "
    "ON abs(l.x - r.x) <= 1 AND l.ts BETWEEN r.ts - INTERVAL 3 SECONDS AND r.ts + INTERVAL 3 SECONDS"
)
HINTED, PLAIN = JOIN.format(hint="/*+ SHED(exact) */"), JOIN.format(hint="")


def make_views(session: SparkSession) -> None:
    for name, factor in (("left_rows", 7), ("right_rows", 5)):
        session.range(200).selectExpr(
            "id", f"timestamp_seconds(id * {factor} % 61) AS ts", f"id * {factor} % 17 / 2.0D AS x"
        ).createOrReplaceTempView(name)


def rows(frame) -> Counter:
    return Counter(map(tuple, frame.collect()))


@pytest.fixture
def enabled(spark):
    make_views(spark)
    yield sparkshed.enable(spark)
    sparkshed.disable(spark)


@pytest.fixture
def sql_texts(monkeypatch, spark):
    """Every text that reaches the JVM's own `sql`."""
    seen = []

    class Recorder:
        def __init__(self, target):
            self._target = target

        def __getattr__(self, name):
            value = getattr(self._target, name)
            if name != "sql":
                return value

            def sql(text, *args):
                seen.append(text)
                return value(text, *args)

            return sql

    monkeypatch.setattr(spark, "_jsparkSession", Recorder(spark._jsparkSession))
    return seen


def is_planned(session: SparkSession, text: str) -> bool:
    """Whether the operator stands in the plan that `spark.sql` makes."""
    return "FlatMapGroupsInArrow" in session.sql(text)._jdf.queryExecution().toString()


def test_enable_returns_the_session_and_disable_undoes_it(spark):
    make_views(spark)
    before = SparkSession.sql, SparkSession.newSession
    assert sparkshed.enable(spark) is spark
    assert is_planned(spark, HINTED)
    assert sparkshed.disable(spark) is spark
    assert (SparkSession.sql, SparkSession.newSession) == before
    assert not is_planned(spark, HINTED)


def test_enabling_twice_is_enabling_once(spark):
    make_views(spark)
    sparkshed.enable(sparkshed.enable(spark))
    assert is_planned(spark, HINTED)
    sparkshed.disable(spark)
    assert not is_planned(spark, HINTED)


def test_a_hinted_query_has_sparks_answer(enabled):
    expected = rows(enabled.sql(PLAIN))
    assert sum(expected.values()) > 100
    assert rows(enabled.sql(HINTED)) == expected


def test_query_does_not_touch_spark_sql(spark):
    make_views(spark)
    before = SparkSession.sql
    assert rows(sparkshed.query(spark, HINTED)) == rows(spark.sql(PLAIN))
    assert SparkSession.sql is before


def test_unhinted_text_reaches_spark_byte_for_byte(enabled, sql_texts):
    for text in (
        "SELECT  1 -- 'SHED(exact)'\n ;",
        "SELECT /*+ BROADCAST(l) */ count(*) FROM left_rows l",
        "SELECT '/*+ SHED(exact) */' AS a",
        'SELECT "/*+ SHED(nonsense) */" AS `/*+ SHED(x) */`',
    ):
        sql_texts.clear()
        enabled.sql(text).collect()
        assert sql_texts == [text]


def test_the_signature_is_sparks(spark):
    before = inspect.signature(SparkSession.sql)
    sparkshed.enable(spark)
    try:
        assert inspect.signature(SparkSession.sql) == before
    finally:
        sparkshed.disable(spark)


def test_named_positional_and_dataframe_arguments(enabled):
    expected = rows(enabled.sql(PLAIN + " WHERE l.x > 2 AND r.id < 90"))
    assert expected
    named = HINTED + " WHERE l.x > :low AND r.id < :high"
    assert rows(enabled.sql(named, args={"low": 2, "high": 90})) == expected
    positional = HINTED + " WHERE l.x > ? AND r.id < ?"
    assert rows(enabled.sql(positional, args=[2, 90])) == expected
    assert rows(enabled.sql(positional, [2, 90])) == expected
    frame = HINTED.replace("left_rows", "{frame}") + " WHERE l.x > {low} AND r.id < :high"
    left = enabled.table("left_rows")
    assert rows(enabled.sql(frame, args={"high": 90}, frame=left, low=2)) == expected
    assert not [v for v in enabled.catalog.listTables() if v.name.startswith(("_pyspark", "__shed"))]


def test_a_parameter_can_be_the_window(enabled):
    import datetime

    text = HINTED.replace("INTERVAL 3 SECONDS", ":w")
    expected = rows(enabled.sql(PLAIN))
    assert rows(enabled.sql(text, args={"w": datetime.timedelta(seconds=3)})) == expected


def test_missing_parameters_are_sparks_error(enabled):
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        enabled.sql(HINTED + " WHERE l.x > :low").collect()


def test_new_sessions_of_an_enabled_one_are_enabled(enabled):
    child = enabled.newSession()
    make_views(child)
    try:
        assert is_planned(child, HINTED)
        sparkshed.disable(enabled)
        assert is_planned(child, HINTED)
        assert not is_planned(enabled, HINTED)
    finally:
        sparkshed.disable(child)


def test_a_session_that_was_not_enabled_stays_plain(spark):
    other = spark.newSession()
    make_views(other)
    make_views(spark)
    sparkshed.enable(spark)
    try:
        assert not is_planned(other, HINTED)
        assert is_planned(spark, HINTED)
    finally:
        sparkshed.disable(spark)


def test_other_python_objects_of_the_session_are_enabled_too(enabled):
    assert is_planned(SparkSession.getActiveSession(), HINTED)
    assert is_planned(enabled.sql(PLAIN).sparkSession, HINTED)


def test_threads(enabled):
    expected = rows(enabled.sql(PLAIN))

    def run(limit):
        return rows(enabled.sql(HINTED + f" WHERE l.id < {limit}")), limit

    with ThreadPoolExecutor(4) as pool:
        for found, limit in pool.map(run, (200, 50, 120, 200)):
            assert found == Counter({key: n for key, n in expected.items() if key[0] < limit})
    assert not [view for view in enabled.catalog.listTables() if view.name.startswith("__shed")]


def test_a_view_dropped_between_planning_and_running(enabled):
    frame = enabled.sql(HINTED)
    expected = rows(enabled.sql(PLAIN))
    enabled.catalog.dropTempView("left_rows")
    assert rows(frame) == expected
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        enabled.sql(HINTED)


def test_explain_through_sql_and_function(enabled):
    simple = sparkshed.explain(enabled, HINTED)
    assert simple.startswith("== Shed Plan ==\nShedJoinExec: strategy=exact")
    (row,) = enabled.sql("EXPLAIN " + HINTED).collect()
    assert row.asDict() == {"plan": simple}
    for mode in ("extended", "formatted"):
        (row,) = enabled.sql(f"EXPLAIN {mode.upper()} {HINTED}").collect()
        assert row.plan == sparkshed.explain(enabled, HINTED, mode=mode)
    assert sparkshed.explain(enabled, HINTED + " WHERE l.x > :x", args={"x": 1}) != simple


def test_explain_refuses_what_it_cannot_explain(enabled):
    with pytest.raises(sparkshed.StatementError, match="no SHED hint"):
        sparkshed.explain(enabled, PLAIN)
    with pytest.raises(sparkshed.StatementError, match="mode 'verbose' is unknown"):
        sparkshed.explain(enabled, HINTED, mode="verbose")


def test_something_else_than_a_session(spark):
    with pytest.raises(sparkshed.ShedError, match="needs a SparkSession of this process"):
        sparkshed.enable("local[2]")


def test_the_answer_is_lazy_and_composes(enabled):
    frame = enabled.sql(HINTED)
    assert frame.columns == ["left_id", "right_id"]
    expected = enabled.sql(PLAIN).groupBy("left_id").count().orderBy("left_id").collect()
    assert frame.groupBy("left_id").count().orderBy("left_id").collect() == expected
    frame.createOrReplaceTempView("found")
    assert enabled.sql("SELECT count(*) FROM found").collect() == [(sum(rows(frame).values()),)]


def test_workers_that_cannot_run_the_join_are_refused_before_it_starts(tmp_path: Path) -> None:
    poor = tmp_path / "poor"
    poor.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'pyarrow'\" >&2; exit 1\n")
    poor.chmod(0o700)
    rich = tmp_path / "rich"
    rich.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    rich.chmod(0o700)

    def session(functions: str, sources: str | None, master: str = "local[2]") -> Any:
        system = SimpleNamespace(getenv={"PYSPARK_PYTHON": sources}.get)
        context = SimpleNamespace(pythonExec=functions, master=master, _jvm=SimpleNamespace(System=system))
        return SimpleNamespace(sparkContext=context)

    check_workers(session(sys.executable, None))
    check_sources(session(sys.executable, str(rich)))
    check_sources(session(sys.executable, str(Path(sys.executable).with_name("python3"))))
    check_workers(session(str(poor), None, "spark://elsewhere:7077"))
    with pytest.raises(sparkshed.ShedError, match="poor`, and that one fails: .*'pyarrow'.*export PYSPARK"):
        check_workers(session(str(poor), str(rich)))
    with pytest.raises(sparkshed.ShedError, match="poor`, and that one fails"):
        check_sources(session(sys.executable, str(poor)))
    with pytest.raises(sparkshed.ShedError, match="does not exist"):
        check_workers(session(str(tmp_path / "gone"), str(rich)))


CLAUSES = (
    "WITH w AS (SELECT * FROM left_rows) SELECT /*+ SHED(exact) */ l.id, count(*) FROM w l JOIN right_rows r "
    "ON (abs(l.x - r.x) <= 1 AND l.ts <= r.ts + INTERVAL 3 SECONDS) WHERE r.ts <= l.ts + INTERVAL 3 SECONDS "
    "GROUP BY l.id ORDER BY l.id LIMIT 3"
)
VIEW = f"CREATE TEMP VIEW v (one, two) AS {HINTED}"


def broken(rng: Random, text: str) -> str:
    """A text that lost, doubled or moved a word, or its end."""
    words = re.findall(r"/\*.*?\*/|\w+|\S", text)
    at = rng.randrange(len(words))
    what = rng.choice(["lose", "double", "swap", "cut"])
    if what == "cut":
        words = words[:at]
    elif what == "lose":
        del words[at]
    elif what == "double":
        words.insert(at, words[at])
    else:
        other = rng.randrange(len(words))
        words[at], words[other] = words[other], words[at]
    return " ".join(words)


@pytest.mark.parametrize("text", [HINTED, CLAUSES, f"EXPLAIN {CLAUSES}", VIEW])
def test_what_spark_cannot_parse_is_refused_as_such(enabled, text):
    rng, parser, seen = Random(len(text)), enabled._jsparkSession.sessionState().sqlParser(), 0
    for _ in range(150):
        wrong = broken(rng, text)
        try:
            parser.parsePlan(wrong)
        except ParseException:
            seen += 1
            with pytest.raises((ParseException, sparkshed.ShedError)):
                enabled.sql(wrong)
            with pytest.raises((PySparkException, sparkshed.ShedError)):
                enabled.sql(wrong, {"x": 1})
    assert seen > 50


def test_errors_of_spark_point_into_the_text_of_the_user(enabled):
    with pytest.raises(AnalysisException, match="nothing_here") as caught:
        enabled.sql(HINTED.replace("right_rows", "nothing_here"))
    place = HINTED.index("right_rows")
    assert f"line 1 pos {place}" in str(caught.value)
    for text in (HINTED, f"EXPLAIN {HINTED}", f"CREATE TEMP VIEW\nw AS {HINTED}"):
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN") as caught:
            enabled.sql(text.replace("r.x", "r.nope"))
        line = text.splitlines()[-1]
        assert f"line {text.count(chr(10)) + 1} pos {line.index('r.x')}" in str(caught.value)


@pytest.mark.parametrize("function", [sparkshed.progress, sparkshed.history])
def test_figures_of_something_else_than_a_query(enabled, function):
    with pytest.raises(sparkshed.ShedError, match="take the query that"):
        function(enabled.range(1))


def test_a_statement_that_is_no_text(enabled):
    with pytest.raises(sparkshed.ShedError, match="got NoneType as the statement"):
        sparkshed.query(enabled, None)


def test_all_names_are_listed_before_they_are_used():
    assert set(sparkshed.__all__) <= set(dir(sparkshed))
