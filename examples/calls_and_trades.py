"""Find trades that follow a phone call to the same broker: equality on a key within a window.

Run it with: python examples/calls_and_trades.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed

TIPPED_OFF = """
SELECT {hint} c.caller, t.symbol, t.at - c.at AS after
FROM calls c JOIN trades t
  ON c.broker = t.broker
 AND t.at BETWEEN c.at AND c.at + INTERVAL 5 MINUTES
WHERE t.shares >= 500
"""


def main() -> tuple[list[Row], list[Row]]:
    """Join with the hint and without it; returns both answers in order."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    spark.range(2000).selectExpr(
        "concat('caller ', id % 700) AS caller",
        "id * 7919 % 50 AS broker",
        "timestamp_seconds(id * 10) AS at",
    ).createOrReplaceTempView("calls")
    spark.range(5000).selectExpr(
        "concat('stock ', id * 31 % 97) AS symbol",
        "id * 104729 % 50 AS broker",
        "id * 13 % 1000 AS shares",
        "timestamp_seconds(id * 4 + 1) AS at",
    ).createOrReplaceTempView("trades")

    # Both streams have the key, so with many cores each core joins the calls and trades of some brokers.
    suspicious = spark.sql(TIPPED_OFF.format(hint="/*+ SHED(exact) */"))
    suspicious.groupBy("caller").count().orderBy("count", ascending=False).show(5)
    answers = sorted(suspicious.collect()), sorted(spark.sql(TIPPED_OFF.format(hint="")).collect())
    sparkshed.disable(spark)
    return answers


if __name__ == "__main__":
    main()
