"""The exact three-way camera join, beside plain Spark's join of the same SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.bench.report import Record
from sparkshed.bench.timing import Run, WrongResult, agreed, count_rows, median, timed
from sparkshed.workloads.cameras import CameraStream, camera_sql, camera_streams, camera_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HINT", "Timing", "WrongResult", "compare", "engines", "measure", "register_cameras", "run"]

HINT = "SHED(exact)"


@dataclass(frozen=True, slots=True)
class Timing(Record):
    """One engine on one workload.

    `ratio` is Spark's time divided by this engine's: above 1 is faster than Spark.
    """

    workload: str
    engine: str
    seconds: float
    results: int
    ratio: float


def register_cameras(spark: SparkSession, streams: Iterable[CameraStream]) -> None:
    """Make the streams readable as views: `cam1`, `cam2` and so on."""
    for number, stream in enumerate(streams, 1):
        spark.createDataFrame(camera_table(stream)).createOrReplaceTempView(f"cam{number}")


def engines(spark: SparkSession, m: int = 3) -> dict[str, Callable[[], DataFrame]]:
    """The same join on each engine. Spark comes first: the others are compared with it."""
    return {
        "spark": lambda: spark.sql(camera_sql(m)),
        "sparkshed": lambda: sparkshed.query(spark, camera_sql(m, hint=HINT)),
    }


def measure(frame: Callable[[], DataFrame]) -> Run:
    """Seconds from SQL text to the last row, and the number of rows."""
    return timed(lambda: count_rows(frame()))


def warm_up(spark: SparkSession) -> None:
    """Run each engine once on little data, so that no one pays for starting up."""
    register_cameras(spark, camera_streams(rate=20, seconds=20))
    for frame in engines(spark).values():
        measure(frame)


def compare(workload: str, runs: dict[str, list[Run]]) -> list[Timing]:
    """Medians of the runs, each beside the first engine's.

    Args:
        workload: Name of the workload.
        runs: Seconds and results of each run, by engine.

    Raises:
        WrongResult: If the runs did not all give the same number of results.

    >>> [t.ratio for t in compare("w", {"spark": [Run(4.0, 7)], "sparkshed": [Run(2.0, 7)]})]
    [1.0, 2.0]
    """
    results = agreed(workload, runs)
    medians = {engine: median(timed) for engine, timed in runs.items()}
    base = next(iter(medians.values()))
    return [
        Timing(workload, engine, round(seconds, 3), results, round(base / seconds, 2))
        for engine, seconds in medians.items()
    ]


def run(spark: SparkSession, rate: float = 200, seconds: float = 60, repeats: int = 3) -> list[Timing]:
    """Time every engine `repeats` times, in turns, after a warm-up.

    Args:
        spark: The session that runs both sides.
        rate: Rows per second of each of the three streams.
        seconds: Length of the streams.
        repeats: Runs of each engine; the median counts.
    """
    warm_up(spark)
    register_cameras(spark, camera_streams(rate, seconds))
    runs: dict[str, list[Run]] = {}
    for _ in range(repeats):
        for engine, frame in engines(spark).items():
            runs.setdefault(engine, []).append(measure(frame))
    return compare(f"3 cameras, nonaligned, {rate:g} rows/s x {seconds:g} s", runs)
