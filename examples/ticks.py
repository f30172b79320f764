"""Match ticks of two stock exchanges while no more than 300 rows are held in memory.

Run it with: python examples/ticks.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed
from sparkshed.workloads.bursty import market_tables

SAME_STOCK = """
SELECT /*+ SHED({how}) */ a.id AS here, b.id AS there, a.k AS stock
FROM exchange1 a JOIN exchange2 b
  ON a.k = b.k AND abs(a.ts - b.ts) <= INTERVAL 60 SECONDS
"""


def main() -> tuple[set[Row], dict[str, set[Row]]]:
    """Join exactly, and within the limit by three strategies; returns the answers."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    for number, ticks in enumerate(market_tables(2, seconds=120), 1):
        spark.createDataFrame(ticks).createOrReplaceTempView(f"exchange{number}")

    exact = set(spark.sql(SAME_STOCK.format(how="exact")).collect())
    limited = {}
    # Which rows leave when there is no room: those that earned least lately (gdj), the oldest, or any.
    for strategy in ("gdj", "fifo", "rand"):
        text = SAME_STOCK.format(how=f"{strategy}, 'memory=300', 'seed=1'")
        limited[strategy] = set(spark.sql(text).collect())
        print(f"{strategy:5} {len(limited[strategy]) / len(exact):.0%} of {len(exact)} rows")
    sparkshed.disable(spark)
    return exact, limited


if __name__ == "__main__":
    main()
