"""A hinted statement beside the same without its hint, for `sparkshed sql --compare`."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.cli.errors import CliError
from sparkshed.sql.errors import listing
from sparkshed.sql.outline import outline
from sparkshed.view.figures import percent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: With these, rows of a part are not a part of the rows.
_MERGING = frozenset(
    {"Aggregate", "Distinct", "Deduplicate", "Except", "Intersect", "Window", "outer join", "sub-query"}
)
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
    if found.kind != "query" or found.explain is not None:
        msg = "--compare takes a query, which can run twice"
        raise CliError(msg)
    hinted = spark.sql(text)
    sparkshed.disable(spark)
    plain = spark.sql(text)
    sheds = any(block.hint.strategy != "exact" for block in found.blocks)
    in_the_way = set(_nodes(plain)) & (_PICKING | _MERGING if sheds else _PICKING)
    if in_the_way:
        msg = (
            "--compare counts the rows of both answers, and the statement has "
            f"{listing(sorted(in_the_way))}. Leave GROUP BY, DISTINCT, LIMIT, outer joins, sub-queries in "
            "conditions and window functions out, and compare the rows that are joined."
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


def _nodes(frame: DataFrame) -> Iterator[str]:
    """What a statement does, by Spark's names."""
    plan = frame._jdf.queryExecution().analyzed()
    # Conditions can have plans in them.
    if re.search(r"\b(exists|list|scalar-subquery)#\d", plan.toString()):
        yield "sub-query"
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = node.getClass().getSimpleName()
        if name == "Join" and node.joinType().toString() not in ("Inner", "Cross"):
            name = "outer join"
        yield name
        children = node.children()
        waiting += [children.apply(number) for number in range(children.size())]


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
