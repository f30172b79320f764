"""Use the hint in front of foreachBatch, and inside it.

Run it with: python examples/for_each_batch.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

import sparkshed

PAID = """
SELECT {hint} o.order_id, o.customer, p.at AS paid_at
FROM orders o JOIN payments p
  ON o.order_id = p.order_id AND p.at BETWEEN o.at AND o.at + INTERVAL 1 HOUR
"""
DISPUTED = """
SELECT {hint} p.order_id, d.reason
FROM paid p JOIN disputes d
  ON p.order_id = d.order_id AND d.at BETWEEN p.paid_at AND p.paid_at + INTERVAL 7 DAYS
"""
HINT = "/*+ SHED(exact) */"


def write_tables(spark: SparkSession, folder: Path) -> None:
    orders = spark.range(300).selectExpr(
        "id AS order_id", "id % 40 AS customer", "timestamp_seconds(id * 60) AS at"
    )
    payments = spark.range(0, 300, 2).selectExpr("id AS order_id", "timestamp_seconds(id * 75) AS at")
    disputes = spark.range(0, 300, 7).selectExpr(
        "id AS order_id", "timestamp_seconds(id * 90 + 86400) AS at", "concat('reason ', id % 3) AS reason"
    )
    for name, frame in {"orders": orders, "payments": payments, "disputes": disputes}.items():
        frame.coalesce(1).write.parquet(str(folder / name))


def main() -> tuple[list[Row], list[Row]]:
    """Run the pipeline on streams, and plain Spark SQL on tables; returns both answers in order."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(spark, folder)
        tables = {own: spark.read.parquet(str(folder / own)) for own in ("orders", "payments", "disputes")}

        tables["disputes"].createOrReplaceTempView("disputes")
        for own in ("orders", "payments"):
            stream = spark.readStream.schema(tables[own].schema).parquet(str(folder / own))
            stream.withWatermark("at", "1 minute").createOrReplaceTempView(own)

        def save(batch: DataFrame, number: int) -> None:
            """Write a micro-batch. One may come again after a crash, so each has a folder of its own."""
            batch.createOrReplaceTempView("paid")
            # Spark runs this in a copy of the session, which understands the hint, too.
            disputed = batch.sparkSession.sql(DISPUTED.format(hint=HINT))
            disputed.write.mode("overwrite").parquet(str(folder / "disputed" / f"batch={number}"))

        query = (
            spark.sql(PAID.format(hint=HINT))
            .writeStream.foreachBatch(save)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        found = sorted(spark.read.parquet(str(folder / "disputed")).select("order_id", "reason").collect())

        for own, table in tables.items():
            table.createOrReplaceTempView(own)
        spark.sql(PAID.format(hint="")).createOrReplaceTempView("paid")
        expected = sorted(spark.sql(DISPUTED.format(hint="")).collect())
    print(f"{len(found)} disputed orders, for example", *found[:3], sep="\n  ")
    sparkshed.disable(spark)
    return found, expected


if __name__ == "__main__":
    main()
