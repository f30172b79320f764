"""Find stories that three news sources tell alike: weighted keywords, compared by their inner product.

Run it with: python examples/news.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed
from sparkshed.workloads.sets import weighted_tables


def similarity(a: str, b: str) -> str:
    """The inner product of two maps from keywords to weights, written so that an index is used."""
    products = f"map_values(map_zip_with({a}, {b}, (word, x, y) -> coalesce(x * y, 0D)))"
    return f"aggregate({products}, 0D, (total, product) -> total + product)"


SAME_STORY = f"""
SELECT {{hint}} a.id AS agency, p.id AS paper, b.id AS blog, map_keys(a.w) AS keywords
FROM agency a
JOIN paper p ON {similarity("a.w", "p.w")} >= 1.5
 AND abs(a.ts - p.ts) <= INTERVAL 20 SECONDS
JOIN blog b ON {similarity("a.w", "b.w")} >= 1.5
 AND abs(a.ts - b.ts) <= INTERVAL 20 SECONDS
"""


def main() -> tuple[list[Row], list[Row]]:
    """Join with the hint and without it; returns both answers in order."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    sources = weighted_tables(rate=5, seconds=60, items=40, skew=0.5, seeds=(0, 1, 2))
    for name, articles in zip(("agency", "paper", "blog"), sources, strict=True):
        spark.createDataFrame(articles).createOrReplaceTempView(name)

    stories = spark.sql(SAME_STORY.format(hint="/*+ SHED(exact) */"))
    stories.show(5, truncate=False)
    answers = sorted(stories.collect()), sorted(spark.sql(SAME_STORY.format(hint="")).collect())
    sparkshed.disable(spark)
    return answers


if __name__ == "__main__":
    main()
