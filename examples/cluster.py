"""Spread one join over four hosts, in two ways: both find the same rows.

Run it with: python examples/cluster.py
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

import sparkshed
from sparkshed.workloads.cameras import camera_sql, camera_streams, camera_table


def main() -> tuple[dict[str, list[Row]], str]:
    """Join on one host and on four; returns the answers in order, and what each way is expected to cost."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    for number, stream in enumerate(camera_streams(rate=20, seconds=60), 1):
        spark.createDataFrame(camera_table(stream)).createOrReplaceTempView(f"cam{number}")

    # Left alone, sparkshed compares the ways by the work of the busiest host; EXPLAIN has the numbers.
    plan = sparkshed.explain(spark, camera_sql(hint="SHED(exact)"))
    expected = next(line.strip() for line in plan.splitlines() if "Diffusion:" in line)
    print(expected)

    answers = {}
    # A host is a Spark partition here. atr sends copies of rows to the hosts of one stream's rows; ctr sends
    # new rows and partial results to the hosts that keep their partners.
    for way in ("none", "atr:4", "ctr:4"):
        answers[way] = sorted(spark.sql(camera_sql(hint=f"SHED(exact, 'diffuse={way}')")).collect())
        print(f"{way:5} {len(answers[way])} rows")
    sparkshed.disable(spark)
    return answers, expected


if __name__ == "__main__":
    main()
