"""Conditions over arrays and maps: which of them the engine computes, and which have an index."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sparkshed.spark.catalog import SparkCatalog
from sparkshed.sql.analyse import analyse
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.forms import indexed
from sparkshed.sql.outline import outline
from sparkshed.sql.predicate import Band, Equality, Form, Overlap, Similarity, WeightedOverlap
from sparkshed.sql.rewrite import Edit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = """
    TIMESTAMP '2024-01-01' AS ts, 1 AS k, array('a') AS tags, array(1) AS ints, array(1D) AS d,
    array(1F) AS f, map('a', 1D) AS m, array(named_struct('u', 1)) AS structs, 'a,b' AS s, 2F AS x,
    array(array(1D)) AS nested, array('a' COLLATE UTF8_LCASE) AS folded, map(1D, 1D) AS md, map('a', 1F) AS mf
"""
DOT = "aggregate(zip_with({l}, {r}, (x, y) -> x * y), 0D, (s, v) -> s + v)"
MAP = "aggregate(map_values(map_zip_with({l}, {r}, (k, x, y) -> coalesce(x * y, 0D))), 0D, (s, v) -> s + v)"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW one AS SELECT {_COLUMNS}")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW two AS SELECT {_COLUMNS}, array(1L) AS longs")
    return spark


Read = Callable[[str], JoinBlock]


@pytest.fixture
def read(session: SparkSession) -> Read:
    """The join block of two relations with one condition besides time."""

    def read(condition: str) -> JoinBlock:
        text = f"SELECT /*+ SHED(exact) */ 1 FROM one a JOIN two b ON a.ts = b.ts AND {condition}"
        found = outline(text)
        assert found is not None
        return analyse(found.blocks[0], Edit(text), SparkCatalog(session, session.sql))[0]

    return read


def only(block: JoinBlock) -> tuple[Expr, Form | None]:
    """The one condition besides the times' equality."""
    assert not block.residual
    (predicate,) = block.predicates[1:]
    return predicate.expr, predicate.form


def texts(*columns: Any) -> list[str]:
    return [column.text for column in columns]


@pytest.mark.parametrize(
    ("condition", "least"),
    [
        ("size(array_intersect(a.tags, b.tags)) >= 2", 2),
        ("SIZE ( array_intersect(a.tags, b.tags) ) > 2", 3),
        ("cardinality(array_intersect(a.tags, b.tags)) >= 1", 1),
        ("array_size((array_intersect(a.tags, b.tags))) >= 2L", 2),
        ("2 <= size(array_intersect(a.tags, b.tags))", 2),
        ("0 < size(array_intersect(a.tags, b.tags))", 1),
        ("size(array_intersect(a.tags, b.tags)) >= 1.5", 2),
        ("size(array_intersect(a.tags, b.tags)) > 1.5D", 2),
        ("size(array_intersect(a.tags, b.tags)) >= 1 + 1", 2),
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_overlap(session: SparkSession, read: Read, condition: str, least: int, ansi: str) -> None:
    with setting(session, "spark.sql.ansi.enabled", ansi):
        expr, form = only(read(condition))
    assert isinstance(form, Overlap)
    assert (texts(form.left, form.right), form.least) == (["a.tags", "b.tags"], least)
    overlap = Call("overlap", (form.left, form.right), "int")
    assert expr == Call(">=", (overlap, Lit(least, "int", str(least))), "boolean")


@pytest.mark.parametrize(
    "condition",
    [
        "size(array_intersect(a.tags, b.tags)) >= 0",
        "size(array_intersect(a.tags, b.tags)) > -1",
        "size(array_intersect(a.tags, b.tags)) = 1",
        "size(array_intersect(a.tags, b.tags)) <= 1",
        "size(array_intersect(a.tags, b.tags)) >= NULL",
        "size(array_intersect(a.tags, b.tags)) >= a.k",
        "size(array_intersect(a.tags, b.tags)) >= double('NaN')",
        "size(array_intersect(a.tags, b.tags)) + 1 >= 3",
        "NOT size(array_intersect(a.tags, b.tags)) >= 2",
        "(size(array_intersect(a.tags, b.tags)) >= 2 OR a.k = b.k)",
    ],
)
def test_overlap_without_an_index(read: Read, condition: str) -> None:
    expr, form = only(read(condition))
    assert form is None
    assert "overlap" in operators(expr)


def test_the_size_of_null(session: SparkSession, read: Read) -> None:
    condition = "{}(array_intersect(a.tags, b.tags)) <= 1"
    with setting(session, "spark.sql.ansi.enabled", "false"):
        assert "coalesce" in operators(only(read(condition.format("size")))[0])
        assert "coalesce" in operators(only(read(condition.format("cardinality")))[0])
        assert "coalesce" not in operators(only(read(condition.format("array_size")))[0])
        with setting(session, "spark.sql.legacy.sizeOfNull", "false"):
            assert "coalesce" not in operators(only(read(condition.format("size")))[0])
    assert "coalesce" not in operators(only(read(condition.format("size")))[0])


def test_operands_are_any_arrays_of_one_stream(read: Read) -> None:
    block = read("size(array_intersect(split(a.s, ','), transform(b.tags, x -> lower(x)))) >= 1")
    _, form = only(block)
    assert isinstance(form, Overlap)
    assert texts(form.left, form.right) == ["split(a.s, ',')", "transform(b.tags, x -> lower(x))"]


def test_elements_get_a_common_type(read: Read) -> None:
    _, form = only(read("size(array_intersect(a.ints, b.longs)) >= 1"))
    assert isinstance(form, Overlap)
    assert [form.left.type, form.right.type] == ["array<bigint>"] * 2
    assert texts(form.left, form.right) == ["CAST(a.ints AS array<bigint>)", "b.longs"]


@pytest.mark.parametrize("column", ["d", "f", "ints", "structs"])
def test_elements_that_are_keys(read: Read, column: str) -> None:
    assert isinstance(only(read(f"size(array_intersect(a.{column}, b.{column})) >= 1"))[1], Overlap)


@pytest.mark.parametrize(
    "condition",
    [
        "size(array_intersect(a.nested, b.nested)) >= 1",
        "size(array_intersect(a.folded, b.folded)) >= 1",
        "size(array_intersect(array_intersect(a.tags, b.tags), b.tags)) >= 1",
        "size(array_union(a.tags, b.tags)) >= 1",
        "exists(a.tags, x -> array_contains(b.tags, x))",
        # Only Spark knows what a variable that is spelled in another case means.
        "aggregate(zip_with(a.d, b.d, (X, y) -> x * y), 0D, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.f, b.f, (x, y) -> x * y), 0F, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x + y), 0D, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x * x), 0D, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> (x - y) * (y - x)), 0D, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x * y), 1D, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x * y), -0D, (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x * y), double(a.k), (s, v) -> s + v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x * y), 0D, (s, v) -> s - v) >= 1",
        "aggregate(zip_with(a.d, b.d, (x, y) -> x * y), 0D, (s, v) -> s + v, s -> sqrt(s)) >= 1",
        MAP.format(l="a.m", r="b.m").replace("0D)))", "1D)))") + " > 1",
        MAP.format(l="a.m", r="b.m").replace("0D)))", "x)))") + " > 1",
        MAP.format(l="a.m", r="b.m").replace("coalesce(x * y, 0D)", "x * y") + " > 1",
        MAP.format(l="a.md", r="b.md") + " > 1",
        MAP.format(l="a.mf", r="b.mf") + " > 1",
    ],
)
def test_what_is_left_to_spark(read: Read, condition: str) -> None:
    block = read(condition)
    assert len(block.residual) == 1
    assert len(block.predicates) == 1


@pytest.mark.parametrize(
    ("condition", "op", "threshold"),
    [
        ("{m}(a.f, b.f) >= 0.5", ">=", 0.5),
        ("{m}(a.f, b.f) < 0.1D", "<", 0.1),
        ("{m}(a.f, b.f) <= 0.1", "<=", 0.1),
        ("{m}(a.f, b.f) > 0.1F", ">", 0.10000000149011612),
        ("1 >= {m}(a.f, b.f)", "<=", 1.0),
        ("float('-Infinity') < {m}(a.f, b.f)", ">", -math.inf),
        ("({m}((a.f), b.f)) >= (0.25)", ">=", 0.25),
    ],
)
@pytest.mark.parametrize("measure", ["inner_product", "cosine_similarity", "l2_distance"])
def test_vectors(read: Read, condition: str, op: str, threshold: float, measure: str) -> None:
    expr, form = only(read(condition.format(m=f"vector_{measure}")))
    assert isinstance(form, Similarity)
    assert (form.measure, form.op, form.threshold) == (measure, op, threshold)
    assert texts(form.left, form.right) == ["a.f", "b.f"]
    assert Call(measure, (form.left, form.right), "float") in calls(expr)


def test_between_is_two_similarities(read: Read) -> None:
    block = read("vector_inner_product(a.f, b.f) BETWEEN 0.5 AND 0.75")
    forms = [predicate.form for predicate in block.predicates[1:]]
    assert [(f.op, f.threshold) for f in forms if isinstance(f, Similarity)] == [(">=", 0.5), ("<=", 0.75)]


@pytest.mark.parametrize(
    "condition",
    [
        "vector_inner_product(a.f, b.f) >= double('NaN')",
        "vector_inner_product(a.f, b.f) >= NULL",
        "vector_inner_product(a.f, b.f) >= a.x",
        "vector_inner_product(a.f, b.f) = 0.5",
        "vector_inner_product(a.f, b.f) * 2 >= 0.5",
        "vector_inner_product(a.f, b.f) > vector_l2_distance(a.f, b.f)",
    ],
)
def test_vectors_without_an_index(read: Read, condition: str) -> None:
    expr, form = only(read(condition))
    assert form is None
    assert "inner_product" in operators(expr)


@pytest.mark.parametrize(
    ("measure", "op"),
    [
        (DOT, "dot"),
        ("reduce(zip_with({l}, {r}, (p, q) -> q * p), CAST(0 AS DOUBLE), (s, v) -> v + s)", "dot"),
        ("aggregate(zip_with({l}, {r}, (x, y) -> (x * y)), double('0'), (s, v) -> (s + v))", "dot"),
        (DOT.replace("x * y", "(x - y) * (x - y)"), "squared_distance"),
        (DOT.replace("x * y", "(y - x) * (y - x)").replace("0D", "0.0D"), "squared_distance"),
    ],
)
def test_sums_over_arrays_of_doubles(read: Read, measure: str, op: str) -> None:
    expr, form = only(read(measure.format(l="a.d", r="b.d") + " <= 2"))
    assert isinstance(form, Similarity)
    assert form == Similarity(op, form.left, form.right, "<=", 2.0)
    measured = Call(op, (form.left, form.right), "double")
    assert expr == Call("<=", (measured, Lit(2.0, "double", "2")), "boolean")


@pytest.mark.parametrize(
    ("condition", "least"),
    [
        (MAP + " >= 0.5", 0.5),
        (MAP.replace("coalesce", "ifnull") + " > 2", 2.0),
        (MAP.replace("coalesce", "nvl").replace("0D)))", "0)))") + " > 2", 2.0),
        ("0.25 <= " + MAP, 0.25),
        (MAP + " >= 0", None),
        (MAP + " > -1", None),
        (MAP + " <= 1", None),
        (MAP + " > double('NaN')", None),
    ],
)
def test_sums_over_maps(read: Read, condition: str, least: float | None) -> None:
    expr, form = only(read(condition.format(l="a.m", r="b.m")))
    assert "map_dot" in operators(expr)
    if least is None:
        assert form is None
    else:
        assert isinstance(form, WeightedOverlap)
        assert (texts(form.left, form.right), form.least) == (["a.m", "b.m"], least)


def test_variables_of_lambda_functions_are_no_columns(read: Read) -> None:
    """`k` and `x` are columns, too; `X` is the variable `x` unless names are case-sensitive."""
    block = read("size(filter(a.ints, k -> k > 0)) = b.k AND size(filter(a.ints, X -> x > 0)) = b.k")
    assert not block.residual
    columns = block.streams[0].inputs
    assert [column.sql for column in columns[1:]] == [
        "size(filter(`a`.`ints`, k -> k > 0))",
        "size(filter(`a`.`ints`, X -> x > 0))",
    ]


def test_variables_that_differ_in_case_are_columns_where_case_matters(
    session: SparkSession, read: Read
) -> None:
    with setting(session, "spark.sql.caseSensitive", "true"):
        assert read("exists(a.tags, LONGS -> size(longs) > 0)").residual
        assert not read("size(filter(a.tags, TAGS -> TAGS > '')) = b.k").residual


def test_lambda_functions_that_may_fail_stay_above_the_join(session: SparkSession, read: Read) -> None:
    condition = "size(array_intersect(transform(a.tags, x -> CAST(x AS INT)), b.ints)) >= 1"
    assert len(read(condition).residual) == 1
    with setting(session, "spark.sql.ansi.enabled", "false"):
        assert not read(condition).residual
    assert not read("size(array_intersect(transform(a.d, x -> x * 2D), b.d)) >= 1").residual
    assert read("size(array_intersect(transform(a.d, x -> CAST(x + a.k AS INT)), b.ints)) >= 1").residual


def test_types_are_asked_for_at_once(session: SparkSession) -> None:
    asked: list[str] = []

    def run(text: str) -> DataFrame:
        asked.append(text)
        return session.sql(text)

    conditions = [
        "size(array_intersect(a.tags, b.tags)) >= 2",
        "vector_inner_product(a.f, b.f) >= 0.5F",
        DOT.format(l="a.d", r="b.d") + " >= 0.5D",
        MAP.format(l="a.m", r="b.m") + " >= 0.5D",
    ]
    counts = []
    for number in (1, len(conditions)):
        asked.clear()
        text = "SELECT /*+ SHED(exact) */ 1 FROM one a JOIN two b ON a.ts = b.ts AND " + " AND ".join(
            conditions[:number]
        )
        found = outline(text)
        assert found is not None
        analyse(found.blocks[0], Edit(text), SparkCatalog(session, run))
        counts.append((len(asked), len([query for query in asked if " AS c0" in query])))
    assert counts[0] == counts[1]
    assert counts[0][1] == 2  # one for types, one for constants


LEFT, RIGHT = Col(0, 0, "array<float>", "a.v"), Col(1, 0, "array<float>", "b.v")
INNER = Call("inner_product", (LEFT, RIGHT), "float")


def test_constants_are_rounded_as_their_type() -> None:
    third = Call("cast", (Lit(16_777_217, "int", "16777217"),), "float")
    _, form = indexed(Call(">=", (INNER, third), "boolean"))
    assert isinstance(form, Similarity)
    assert form.threshold == 16_777_216.0


def test_thresholds_beyond_all_sizes_have_no_index() -> None:
    overlap = Call("cast", (Call("overlap", (LEFT, RIGHT), "int"),), "bigint")
    expr = Call(">", (overlap, Lit(1 << 40, "bigint", "x")), "boolean")
    assert indexed(expr) == (expr, None)


def test_the_documentation_lists_what_has_an_index(session: SparkSession) -> None:
    page = (Path(__file__).parents[1] / "docs" / "hint.md").read_text()
    section = page.split("### Conditions that have an index")[1].split("\n#")[0]
    conditions = re.findall(r"^\| `([^`]*)` \| [^|]* \|$", section, re.MULTILINE)
    for name, view in (("a", "one"), ("b", "two")):
        session.table(view).withColumnRenamed("f", "v").createOrReplaceTempView(f"listed_{name}")
    text = (
        "SELECT /*+ SHED(exact) */ 1 FROM listed_a a JOIN listed_b b ON "
        f"abs(a.ts - b.ts) < INTERVAL 1 SECOND AND {' AND '.join(conditions)}"
    )
    found = outline(text)
    assert found is not None
    block = analyse(found.blocks[0], Edit(text), SparkCatalog(session, session.sql))[0]
    kinds = [type(predicate.form) for predicate in block.predicates]
    assert kinds == [Equality, Band, Overlap, Similarity, Similarity, Similarity, WeightedOverlap]
    assert not block.residual


def calls(expr: Expr) -> Iterator[Call]:
    if isinstance(expr, Call):
        yield expr
        for arg in expr.args:
            yield from calls(arg)


def operators(expr: Expr) -> set[str]:
    return {call.op for call in calls(expr)}


class setting:
    """A Spark setting for a while."""

    def __init__(self, session: SparkSession, key: str, value: str) -> None:
        self._conf, self._key, self._value = session.conf, key, value
        self._before = str(session.conf.get(key))

    def __enter__(self) -> None:
        self._conf.set(self._key, self._value)

    def __exit__(self, *exception: object) -> None:
        self._conf.set(self._key, self._before)
