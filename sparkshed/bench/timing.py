"""Timing: what a run is, and how often it is repeated."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A run that took longer than this is not repeated.
LONG_SECONDS = 60


class WrongResult(RuntimeError):
    """Two engines disagree on the number of results, so their times mean nothing."""


class Run(NamedTuple):
    """One timed run."""

    seconds: float
    results: int


def timed(join: Callable[[], int]) -> Run:
    """Run the join, which returns its number of results."""
    start = time.perf_counter()
    results = join()
    return Run(time.perf_counter() - start, results)


def repeated(join: Callable[[], int], repeats: int) -> Iterator[Run]:
    """Run the join `repeats` times, or once if that takes long."""
    for _ in range(repeats):
        run = timed(join)
        yield run
        if run.seconds > LONG_SECONDS:
            return


def median(runs: Iterable[Run]) -> float:
    """Median of the seconds.

    >>> median([Run(1.0, 7), Run(9.0, 7), Run(2.0, 7)])
    2.0
    """
    return statistics.median(seconds for seconds, _ in runs)


def agreed(workload: str, runs: dict[str, list[Run]]) -> int:
    """The number of results that all runs of all engines have.

    Raises:
        WrongResult: If they do not all have the same.
    """
    counts = {engine: sorted({results for _, results in found}) for engine, found in runs.items()}
    distinct = {count for found in counts.values() for count in found}
    if len(distinct) != 1:
        msg = f"{workload}: the engines disagree on the number of results: {counts}"
        raise WrongResult(msg)
    return distinct.pop()


def count_rows(frame: DataFrame) -> int:
    """Compute every row of a Spark DataFrame, and count them on the way.

    Rows go to Spark's `noop` sink: every column is computed and nothing is written.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    rows = frame.observe(seen, F.count(F.lit(1)).alias("rows"))
    rows.write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])
