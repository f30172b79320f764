"""The relations that golden files query: small, repeatable, and full of awkward values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sparkshed
from sparkshed.spark.functions import install

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Columns of `a`, `b`, `c`, `d` and `e`; `{n}` makes them differ. NULL, NaN, -0.0 and infinities occur,
#: times repeat, and most columns have few distinct values so that rows meet.
_COLUMNS = (
    "id",
    "if(id % 29 = 7, NULL, timestamp_micros(1700000000000000 + pmod(hash(id, {n}), 240) * 500000)) AS ts",
    "if(id % 17 = 3, NULL, timestamp_seconds(1700000000 + pmod(hash(id, {n}, 1), 90))) AS ts2",
    "if(id % 31 = 5, NULL, TIMESTAMP_NTZ '2024-03-31 00:00:00' + make_dt_interval(0, 0, 0,"
    " CAST(pmod(hash(id, {n}, 2), 400) / 4 AS DECIMAL(18, 6)))) AS nt",
    "if(id % 23 = 4, NULL, date_add(DATE '2024-02-25', pmod(hash(id, {n}, 3), 40))) AS dt",
    "if(id % 11 = 0, NULL, pmod(hash(id, {n}, 4), 7)) AS k",
    "if(id % 13 = 1, NULL, CAST(pmod(hash(id, {n}, 5), 41) - 20 AS BIGINT)) AS n",
    "CASE id % 19 WHEN 2 THEN NULL WHEN 3 THEN double('NaN') WHEN 5 THEN -0.0D WHEN 6 THEN 0.0D"
    " WHEN 7 THEN double('Infinity') ELSE (pmod(hash(id, {n}, 6), 81) - 40) / 4.0D END AS x",
    "CASE id % 19 WHEN 1 THEN NULL WHEN 4 THEN float('NaN') WHEN 8 THEN float(-0.0) WHEN 9 THEN float(0.0)"
    " ELSE float((pmod(hash(id, {n}, 7), 61) - 30) / 10.0D) END AS f",
    "if(id % 14 = 6, NULL, CAST((pmod(hash(id, {n}, 8), 401) - 200) / 20.0D AS DECIMAL(10, 2))) AS m",
    "CASE id % 16 WHEN 5 THEN NULL WHEN 6 THEN '' ELSE"
    " concat(substring('abAÉz', 1 + pmod(hash(id, {n}, 9), 5), 1), pmod(hash(id, {n}, 10), 3)) END AS s",
    "if(id % 9 = 8, NULL, pmod(hash(id, {n}, 11), 2) = 0) AS p",
    "if(id % 15 = 9, NULL, unhex(substring('00ff7f80', 1 + 2 * pmod(hash(id, {n}, 12), 4), 2))) AS y",
    "if(id % 21 = 4, NULL, named_struct('u', if(id % 5 = 0, NULL, pmod(hash(id, {n}, 13), 4)),"
    " 'v', substring('xyz', 1 + pmod(hash(id, {n}, 14), 3), 1))) AS r",
    "if(id % 18 = 2, NULL,"
    " array(pmod(hash(id, {n}, 15), 3), if(id % 4 = 1, NULL, pmod(hash(id, {n}, 16), 2)))) AS l",
    "CAST(pmod(hash(id, {n}, 17), 100) AS SMALLINT) AS w",
)

_STREAMS = {"a": 120, "b": 110, "c": 100, "d": 60, "e": 60}

#: Half-hourly times around both changes of the clock in Paris: `2024-03-31` and `2024-10-27`.
_CHANGES = (
    "timestamp_seconds(if(id % 2 = 0, 1711755000, 1729899000) + pmod(hash(id, {n}), 192) * 1800 + {n}) AS ts"
)

#: Columns of `g`, `h` and `i`: sets, vectors of five numbers, weighted sets.
_COLLECTIONS = (
    "id",
    "timestamp_micros(1700000000000000 + pmod(hash(id, {n}), 240) * 500000) AS ts",
    "pmod(hash(id, {n}, 1), 3) AS k",
    "pmod(hash(id, {n}, 2), 30) / 10.0D AS x",
    "CASE id % 13 WHEN 0 THEN NULL WHEN 1 THEN CAST(array() AS ARRAY<STRING>) WHEN 2 THEN array(NULL, NULL)"
    " ELSE transform(sequence(1, 1 + pmod(hash(id, {n}, 20), 5)), j -> if(pmod(hash(id, {n}, j, 21), 9) = 0,"
    " NULL, substring('abcdeéA', 1 + pmod(hash(id, {n}, j, 22), 7), 1))) END AS tags",
    "CASE id % 11 WHEN 3 THEN NULL WHEN 4 THEN CAST(array() AS ARRAY<INT>)"
    " ELSE transform(sequence(1, 1 + pmod(hash(id, {n}, 23), 4)), j ->"
    " if(pmod(hash(id, {n}, j, 24), 8) = 0, NULL, pmod(hash(id, {n}, j, 25), 6))) END AS ints",
    "transform(sequence(1, 1 + pmod(hash(id, {n}, 26), 4)), j -> CASE pmod(hash(id, {n}, j, 27), 9)"
    " WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D WHEN 3 THEN 0.0D"
    " ELSE pmod(hash(id, {n}, j, 28), 20) / 4 END) AS reals",
    "CASE id % 17 WHEN 2 THEN NULL WHEN 5 THEN array_repeat(0F, 5)"
    " ELSE transform(sequence(1, 5), j -> CASE WHEN id % 17 = 7 AND j = 3 THEN NULL"
    " WHEN id % 17 = 9 AND j = 2 THEN float('NaN') WHEN id % 17 = 11 AND j = 4 THEN float('Infinity')"
    " ELSE float(pmod(hash(id, {n}, j, 29), 2000) / 700.0D - 1.2D) END) END AS f",
    "CASE id % 17 WHEN 2 THEN NULL WHEN 5 THEN array_repeat(0D, 5)"
    " ELSE transform(sequence(1, 5), j -> CASE WHEN id % 17 = 7 AND j = 3 THEN NULL"
    " WHEN id % 17 = 9 AND j = 2 THEN double('NaN') WHEN id % 17 = 11 AND j = 4 THEN double('-Infinity')"
    " ELSE pmod(hash(id, {n}, j, 30), 2000) / 700.0D - 1.2D END) END AS d",
    "CASE id % 14 WHEN 3 THEN NULL WHEN 5 THEN CAST(map() AS MAP<STRING, DOUBLE>)"
    " ELSE map_from_entries(transform(sequence(1, 1 + pmod(hash(id, {n}, 31), 4)), j -> struct("
    "concat('w', 4 * (pmod(hash(id, {n}, 32), 3) + 1) - j), CASE pmod(hash(id, {n}, j, 33), 12)"
    " WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.75D"
    " ELSE pmod(hash(id, {n}, j, 34), 1000) / 700.0D END))) END AS m",
)

#: Vectors of two, three or four numbers.
_RAGGED = (
    "id",
    "timestamp_seconds(1700000000 + id) AS ts",
    "transform(sequence(1, 2 + CAST(id % 3 AS INT)), j -> float(j)) AS f",
    "transform(sequence(1, 2 + CAST(id % 3 AS INT)), j -> double(j)) AS d",
)


def _materialised(frame: DataFrame) -> DataFrame:
    """The same rows without the work of making them: hundreds of queries read them."""
    return frame.localCheckpoint()


def make_predicates(spark: SparkSession) -> None:
    """Register predicates, and let the session call them without the hint, too."""
    import numpy as np
    import pyarrow.compute as pc

    def fails_on_large(x: Any, y: Any) -> Any:
        if (x > 2.5).any():
            msg = "x is above 2.5"
            raise ValueError(msg)
        return x < y

    for name, function in {
        "near": lambda ax, ay, bx, by: np.hypot(ax - bx, ay - by) < 1,
        "same_parity": lambda left, right: left % 2 == right % 2,
        "shares_start": lambda left, right: pc.equal(
            pc.utf8_slice_codeunits(left, 0, 1), pc.utf8_slice_codeunits(right, 0, 1)
        ),
        "unknown_if_equal": lambda x, y: pc.if_else(pc.equal(x, y), None, pc.less(x, y)),
        "within": lambda left, right, reach: np.abs(left - right) <= reach,
        "longer": lambda left, right: pc.greater(pc.list_value_length(left), pc.list_value_length(right)),
        "cheaper": lambda left, right: pc.less(left, right),
        "same_field": lambda left, right: pc.equal(pc.struct_field(left, "u"), pc.struct_field(right, "u")),
        "fails_on_large": fails_on_large,
    }.items():
        sparkshed.register_predicate(name, function)
    install(spark)


def make_views(spark: SparkSession) -> None:
    """Create the temp views, tables and predicates that all golden files share."""
    make_predicates(spark)
    for number, (name, rows) in enumerate(_STREAMS.items(), 1):
        columns = [column.format(n=number) for column in _COLUMNS]
        _materialised(spark.range(0, rows, 1, 1).selectExpr(*columns)).createOrReplaceTempView(name)
    for number, (name, rows) in enumerate({"g": 120, "h": 110, "i": 60}.items(), 1):
        columns = [column.format(n=number) for column in _COLLECTIONS]
        _materialised(spark.range(0, rows, 1, 1).selectExpr(*columns)).createOrReplaceTempView(name)
    _materialised(spark.range(0, 30, 1, 1).selectExpr(*_RAGGED)).createOrReplaceTempView("ragged")
    for number, name in enumerate(("paris1", "paris2", "paris3")):
        frame = spark.range(0, 90, 1, 1).selectExpr(
            "id", _CHANGES.format(n=number), f"pmod(hash(id, {number}, 1), 4) AS k"
        )
        frame = frame.selectExpr("*", "CAST(ts AS DATE) AS dt", "CAST(ts AS TIMESTAMP_NTZ) AS nt")
        _materialised(frame).createOrReplaceTempView(name)
    odd = spark.table("a").selectExpr("id AS `row id`", "ts AS `at time`", "x AS `a``b`", "k AS `group`")
    odd.createOrReplaceTempView("`odd names`")
    spark.range(0, 80, 1, 1).selectExpr(
        "id AS offset",
        "timestamp_seconds(1700000000 + id) AS ts",
        "id % 5 AS limit",
        "named_struct('k', id % 3, 'ts', timestamp_seconds(1700000000 + id)) AS value",
    ).createOrReplaceTempView("kafka")
    spark.sql("CREATE DATABASE IF NOT EXISTS plant")
    for name, source in (("left_readings", "d"), ("right_readings", "e")):
        spark.sql(f"DROP TABLE IF EXISTS plant.{name}")
        spark.sql(f"CREATE TABLE plant.{name} USING parquet AS SELECT id, ts, k, x, s FROM {source}")
