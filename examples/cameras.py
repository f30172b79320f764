"""Three cameras along a road: which sightings belong to the same car?

Run it with: python examples/cameras.py
"""

from __future__ import annotations

from pyspark.sql import SparkSession

import sparkshed
from sparkshed.workloads.cameras import camera_streams, camera_table

SAME_CAR = """
SELECT {hint} c1.id AS first, c2.id AS second, c3.id AS third, c3.ts - c1.ts AS on_the_road
FROM cam1 c1
JOIN cam2 c2 ON abs(c1.x - c2.x) <= 1
 AND c2.ts BETWEEN c1.ts - INTERVAL 20 SECONDS AND c1.ts + INTERVAL 20 SECONDS
JOIN cam3 c3 ON abs(c2.x - c3.x) <= 1
 AND c3.ts BETWEEN c2.ts - INTERVAL 20 SECONDS AND c2.ts + INTERVAL 20 SECONDS
WHERE c1.id % 2 = 0
"""


def main() -> tuple[int, int]:
    """Join with the hint and without it; returns both numbers of rows."""
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    for number, stream in enumerate(camera_streams(rate=20, seconds=60), 1):
        spark.createDataFrame(camera_table(stream)).createOrReplaceTempView(f"cam{number}")

    sparkshed.enable(spark)
    hinted = SAME_CAR.format(hint="/*+ SHED(exact) */")
    print(sparkshed.explain(spark, hinted))
    found = spark.sql(hinted)
    found.orderBy("first", "second", "third").show(5, truncate=False)
    counts = found.count(), spark.sql(SAME_CAR.format(hint="")).count()
    print(f"{counts[0]} rows with the hint, {counts[1]} without it")
    sparkshed.disable(spark)
    return counts


if __name__ == "__main__":
    main()
