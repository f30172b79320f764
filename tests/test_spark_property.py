"""Random joins: the hinted query and plain Spark give the same multiset."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sparkshed

EPOCH = datetime.datetime(2024, 3, 31, tzinfo=datetime.timezone.utc)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("n", pa.int32()),
        ("b", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("m", pa.decimal128(6, 2)),
        ("s", pa.string()),
        ("o", pa.bool_()),
    ]
)

# Few distinct values, so that duplicates and matches are common; times to the microsecond.
TIMES = st.one_of(
    st.none(),
    st.integers(0, 12).map(lambda s: EPOCH + datetime.timedelta(seconds=s)),
    st.integers(0, 3).map(lambda u: EPOCH + datetime.timedelta(seconds=5, microseconds=u)),
)
ROW = st.tuples(
    TIMES,
    st.one_of(st.none(), st.integers(-3, 3)),
    st.one_of(st.none(), st.integers(-3, 3)),
    st.one_of(st.none(), st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1.5, float("nan"), float("inf")])),
    st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 0.25, float("nan")])),
    st.one_of(st.none(), st.integers(-300, 300).map(lambda c: decimal.Decimal(c) / 100)),
    st.one_of(st.none(), st.sampled_from(["", "a", "A", "b", "é", "ab"])),
    st.one_of(st.none(), st.booleans()),
)


@st.composite
def bound(draw, left: str, right: str) -> str:
    """A time bound between two streams, of any shape."""
    low, high = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    shapes = (
        f"{left}.ts BETWEEN {right}.ts - INTERVAL {low} SECONDS AND {right}.ts + INTERVAL {high} SECONDS",
        f"{left}.ts < {right}.ts + INTERVAL '{high}' SECOND AND {right}.ts <= {left}.ts",
        f"{left}.ts - {right}.ts <= INTERVAL {high} SECONDS",
        f"{left}.ts >= {right}.ts",
        f"abs({left}.ts - {right}.ts) < INTERVAL {low + 1} SECONDS",
        f"{left}.ts = {right}.ts",
        f"{left}.ts + INTERVAL 1 MICROSECOND > {right}.ts "
        f"AND {left}.ts <= {right}.ts + INTERVAL 2 MICROSECONDS",
    )
    return draw(st.sampled_from(shapes))


@st.composite
def predicate(draw, left: str, right: str) -> str:
    """A condition over two streams: key, band, or any expression."""
    a, b = draw(st.permutations([left, right]))
    column, other = draw(st.sampled_from("nbdfm")), draw(st.sampled_from("nbdfm"))
    return draw(
        st.sampled_from(
            (
                f"{a}.{column} = {b}.{other}",
                f"{a}.s = {b}.s",
                f"{a}.n <=> {b}.n",
                f"{a}.s <=> {b}.s",
                f"{a}.d <=> {b}.d",
                f"abs({a}.{column} - {b}.{other}) <= 1",
                f"{a}.{column} BETWEEN {b}.{other} - 1 AND {b}.{other} + 0.5",
                f"{a}.{column} < {b}.{other}",
                f"{a}.{column} >= {b}.{other} - 1",
                f"{a}.{column} - {b}.{other} > 0.5",
                f"({a}.s < {b}.s OR {a}.o)",
                f"NOT ({a}.o AND {b}.{column} > 0)",
                f"CASE WHEN {a}.n > {b}.n THEN {a}.o WHEN {b}.o THEN true END",
                f"coalesce({a}.{column}, {b}.{other}) <> 1",
                f"{a}.n IN ({b}.n, 1, NULL)",
                f"{a}.n NOT IN ({b}.n, 2)",
                f"({a}.n IS NULL OR {b}.s IS NOT NULL)",
                f"greatest({a}.n, {b}.n) + {a}.b * {b}.b < 4",
                f"{a}.d / (abs({b}.n) + 1) < 1",
                f"({a}.n + {b}.n) % 2 = 0",
                f"{a}.o = {b}.o",
                f"concat({a}.s, {b}.s) = 'ab'",
                f"lower({a}.s) = lower({b}.s)",
            )
        )
    )


@st.composite
def joins(draw) -> tuple[list[list[tuple]], str]:
    """Rows of two to five streams, and the FROM clause that joins them."""
    count = draw(st.sampled_from([2, 2, 3, 3, 4, 5]))
    most = {2: 30, 3: 15, 4: 8, 5: 5}[count]
    rows = [
        draw(st.lists(ROW, min_size=draw(st.sampled_from([0, 1, most])), max_size=most)) for _ in range(count)
    ]
    clause = "t0"
    for number in range(1, count):
        partner = f"t{draw(st.integers(0, number - 1))}"
        here = f"t{number}"
        conditions = [draw(bound(here, f"t{p}")) for p in range(number)]
        if draw(st.booleans()):
            conditions.append(draw(predicate(here, partner)))
        conditions.append(draw(predicate(here, partner)))
        clause += f" JOIN {here} ON " + " AND ".join(conditions)
    if draw(st.booleans()):
        clause += (
            f" WHERE {draw(st.sampled_from(['t0.n > -2', 't1.s IS NOT NULL', 't0.d < t1.d OR t1.n > 0']))}"
        )
    return rows, clause


def table(rows: list[tuple]) -> pa.Table:
    columns = list(zip(*((number, *row) for number, row in enumerate(rows)), strict=True)) or [()] * len(
        SCHEMA
    )
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA
    )


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(joins(), st.sampled_from(["", ", 'diffuse=atr:3'", ", 'diffuse=ctr:3'"]))
def test_random_joins_have_sparks_answer(spark, join, routing):
    rows, clause = join
    for number, values in enumerate(rows):
        spark.createDataFrame(table(values)).createOrReplaceTempView(f"t{number}")
    names = ", ".join(f"t{number}.id AS i{number}" for number in range(len(rows)))
    found = sparkshed.query(spark, f"SELECT /*+ SHED(exact{routing}) */ {names} FROM {clause}")
    expected = Counter(map(tuple, spark.sql(f"SELECT {names} FROM {clause}").collect()))
    assert Counter(map(tuple, found.collect())) == expected
