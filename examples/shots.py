"""Find video shots that two channels showed within 20 seconds: cosine similarity of feature vectors.

Run it with: python examples/shots.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed
from sparkshed.workloads.vectors import vector_tables

SAME_SHOT = """
SELECT {hint} n.id AS news_shot, s.id AS sports_shot,
       round(vector_cosine_similarity(n.v, s.v), 2) AS similarity
FROM news_channel n JOIN sports_channel s
  ON vector_cosine_similarity(n.v, s.v) >= 0.9
 AND abs(n.ts - s.ts) <= INTERVAL 20 SECONDS
"""


def main() -> tuple[list[Row], list[Row]]:
    """Join with the hint and without it; returns both answers in order."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    # Each vector describes a shot; shots of the same scene lie close together.
    channels = vector_tables(rate=8, seconds=60, dimensions=32, clusters=30)
    for name, shots in zip(("news_channel", "sports_channel"), channels, strict=True):
        spark.createDataFrame(shots).createOrReplaceTempView(name)

    repeated = spark.sql(SAME_SHOT.format(hint="/*+ SHED(exact) */"))
    repeated.show(5)
    answers = sorted(repeated.collect()), sorted(spark.sql(SAME_SHOT.format(hint="")).collect())
    sparkshed.disable(spark)
    return answers


if __name__ == "__main__":
    main()
