"""Find storm damage that was claimed three times, with a fifth of the work that the exact join takes.

Windows are long (45 days) and the condition has no index, so each claim would be compared with very many.
But the three offices are always asked in the same order, about ten days apart: that is learned, and mostly
these days are searched.

Run it with: python examples/claims.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pyspark.sql import Row, SparkSession

import sparkshed

CLAIMED_THREE_TIMES = """
SELECT {hint} i.id AS insurer, f.id AS fund, t.id AS town
FROM insurer i
JOIN fund f ON abs(i.damage - f.damage) + abs(i.place - f.place) <= 2
 AND abs(i.ts - f.ts) <= INTERVAL 45 DAYS
JOIN town t ON abs(f.damage - t.damage) + abs(f.place - t.place) <= 2
 AND abs(f.ts - t.ts) <= INTERVAL 45 DAYS
"""


def claims(days_after: float, seed: int, count: int = 600) -> pd.DataFrame:
    """Claims of one office in a year: each names the place (km along the coast) and the damage in percent."""
    losses, office = np.random.default_rng(0), np.random.default_rng(seed)
    day = losses.uniform(0, 365, count) + office.normal(days_after, 1.5, count)
    return pd.DataFrame(
        {
            "id": np.arange(count),
            "ts": pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(np.round(day * 86400), unit="s"),
            "place": losses.uniform(0, 100, count) + office.normal(0, 0.2, count),
            "damage": losses.uniform(0, 100, count) + office.normal(0, 0.2, count),
        }
    )


def main() -> tuple[set[Row], set[Row]]:
    """Join with a fifth of the work, and exactly; returns both answers."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    for number, office in enumerate(("insurer", "fund", "town")):
        spark.createDataFrame(claims(10.0 * number, seed=number + 1)).createOrReplaceTempView(office)

    shed = CLAIMED_THREE_TIMES.format(hint="/*+ SHED(grubjoin, 'budget=0.2', 'seed=1') */")
    # The lines "Harvest" show which days are searched, "Expected" what share of the answer that will find.
    print(sparkshed.explain(spark, shed))
    found = set(spark.sql(shed).collect())
    exact = set(spark.sql(CLAIMED_THREE_TIMES.format(hint="/*+ SHED(exact) */")).collect())
    print(f"{len(found)} of {len(exact)} found: recall {len(found) / len(exact):.2f} for 0.2 of the work")
    sparkshed.disable(spark)
    return found, exact


if __name__ == "__main__":
    main()
