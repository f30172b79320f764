"""A hinted statement beside the same without its hint, for `sparkshed sql --compare`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.cli.errors import CliError
from sparkshed.spark.catalog import SparkCatalog
from sparkshed.sql.errors import listing
from sparkshed.sql.outline import outline
from sparkshed.view.figures import percent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: What makes few rows of many, so that rows of a part are not a part of the rows.
_MERGING = frozenset({"Aggregate", "Distinct", "Deduplicate", "Except", "Intersect", "Window"})
#: What takes any rows there are.
_PICKING = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sample", "Tail"})


def compare(spark: SparkSession, text: str) -> int:
    """Both answers, as multisets, and how long each took.

    Raises:
        CliError: Rows of the two answers say nothing about each other.
    """
    found = outline(text)
    if found is None:
        msg = "the statement has no SHED hint, so there is nothing to compare with plain Spark"
        raise CliError(msg)
    hinted = spark.sql(text)
    sparkshed.disable(spark)
    plain = spark.sql(text)
    sheds = any(block.hint.strategy != "exact" for block in found.blocks)
    nodes = set(SparkCatalog(spark, spark.sql).above_join(text))
    in_the_way = nodes & (_PICKING | _MERGING if sheds else _PICKING)
    if in_the_way:
        msg = (
            f"--compare counts the rows of both answers, and above the join is {listing(in_the_way)}. Leave "
            "GROUP BY, DISTINCT, LIMIT and window functions out, and compare the rows that are joined."
        )
        raise CliError(msg)
    seconds = {}
    for name, frame in {"with the hint": hinted, "plain Spark": plain}.items():
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds[name] = time.perf_counter() - began
    rows, missed, wrong = plain.count(), plain.exceptAll(hinted).count(), hinted.exceptAll(plain).count()
    print(f"plain Spark     {_rows(rows)} in {seconds['plain Spark']:.2f} s")
    print(f"with the hint   {_rows(rows - missed + wrong)} in {seconds['with the hint']:.2f} s")
    print(f"recall          {percent((rows - missed) / rows) if rows else '100 %'}")
    print(f"speed           {seconds['plain Spark'] / seconds['with the hint']:.2f} times plain Spark's")
    if wrong:
        print(f"{_rows(wrong)} not in Spark's answer; please report this statement", file=sys.stderr)
    return 1 if wrong else 0


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
