"""A hinted statement beside the same without its hint, for `sparkshed sql --compare`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.view.figures import percent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def compare(spark: SparkSession, text: str, hinted: DataFrame) -> int:
    """Both answers, as multisets, and how long each took."""
    seconds = {}
    sparkshed.disable(spark)
    plain = spark.sql(text)
    for name, frame in {"with the hint": hinted, "plain Spark": plain}.items():
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds[name] = time.perf_counter() - began
    rows, missed, wrong = plain.count(), plain.exceptAll(hinted).count(), hinted.exceptAll(plain).count()
    print(f"plain Spark     {rows} rows in {seconds['plain Spark']:.2f} s")
    print(f"with the hint   {rows - missed + wrong} rows in {seconds['with the hint']:.2f} s")
    print(f"recall          {percent((rows - missed) / rows) if rows else '100 %'}")
    print(f"speed           {seconds['plain Spark'] / seconds['with the hint']:.2f} times plain Spark's")
    if wrong:
        print(f"{wrong} rows are not in Spark's answer; please report this statement", file=sys.stderr)
    return 1 if wrong else 0
