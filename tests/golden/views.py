"""The relations that golden files query: small, repeatable, and full of awkward values."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def _materialised(frame: DataFrame) -> DataFrame:
    """The same rows without the work of making them: hundreds of queries read them."""
    return frame.localCheckpoint()


def make_views(spark: SparkSession) -> None:
    """Create the temp views and tables that all golden files share."""
    for number, (name, rows) in enumerate(_STREAMS.items(), 1):
        columns = [column.format(n=number) for column in _COLUMNS]
        _materialised(spark.range(0, rows, 1, 1).selectExpr(*columns)).createOrReplaceTempView(name)
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
    spark.readStream.format("rate").load().createOrReplaceTempView("ticks")
    spark.sql("CREATE DATABASE IF NOT EXISTS plant")
    for name, source in (("left_readings", "d"), ("right_readings", "e")):
        spark.sql(f"DROP TABLE IF EXISTS plant.{name}")
        spark.sql(f"CREATE TABLE plant.{name} USING parquet AS SELECT id, ts, k, x, s FROM {source}")
