"""Find correlated attacks: alerts of two networks that share three targets or more within 20 seconds.

Run it with: python examples/attacks.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed
from sparkshed.workloads.sets import set_tables

SAME_ATTACKER = """
SELECT {hint} a.id AS office, b.id AS plant, array_intersect(a.s, b.s) AS targets
FROM office_alerts a JOIN plant_alerts b
  ON size(array_intersect(a.s, b.s)) >= 3
 AND abs(a.ts - b.ts) <= INTERVAL 20 SECONDS
"""


def main() -> tuple[list[Row], list[Row]]:
    """Join with the hint and without it; returns both answers in order."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    # Some services are attacked more often than others, hence the skew.
    office, plant = set_tables(rate=10, seconds=60, items=100, skew=0.7)
    spark.createDataFrame(office).createOrReplaceTempView("office_alerts")
    spark.createDataFrame(plant).createOrReplaceTempView("plant_alerts")

    hinted = SAME_ATTACKER.format(hint="/*+ SHED(exact) */")
    # "postings": alerts are found by the targets that they have in common, not by comparing all pairs.
    print(sparkshed.explain(spark, hinted))
    attacks = spark.sql(hinted)
    attacks.show(5)
    answers = sorted(attacks.collect()), sorted(spark.sql(SAME_ATTACKER.format(hint="")).collect())
    sparkshed.disable(spark)
    return answers


if __name__ == "__main__":
    main()
