"""A hinted join inside a pipeline: a temp view, then plain SQL on top of it.

Run it with: python examples/temp_view.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed


def main() -> list[Row]:
    """Match orders with payments, and sum up per customer."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    spark.range(500).selectExpr(
        "id AS order_id",
        "id % 20 AS customer",
        "id % 90 + 0.5 AS amount",
        "timestamp_seconds(id * 7) AS ordered",
    ).createOrReplaceTempView("orders")
    spark.range(480).selectExpr(
        "id AS payment_id",
        "id % 20 AS customer",
        "id % 90 + 0.5 AS paid",
        "timestamp_seconds(id * 7 + 30) AS at",
    ).createOrReplaceTempView("payments")

    spark.sql("""
        CREATE OR REPLACE TEMP VIEW settled AS
        SELECT /*+ SHED(exact) */ o.customer, o.order_id, p.paid
        FROM orders o JOIN payments p
          ON o.customer = p.customer AND o.amount = p.paid
         AND p.at >= o.ordered AND p.at < o.ordered + INTERVAL 1 MINUTE
    """)
    totals = "SELECT customer, count(*) AS orders, sum(paid) AS paid FROM settled GROUP BY customer"
    rows = spark.sql(totals).collect()
    for row in sorted(rows)[:5]:
        print(row)
    sparkshed.disable(spark)
    return rows


if __name__ == "__main__":
    main()
