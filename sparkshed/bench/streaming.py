"""Streaming under overload: live cameras at the rate that the exact join sustains, and far beyond it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.bench.report import Record
from sparkshed.workloads.cameras import nonaligned
from sparkshed.workloads.live import LiveCameras

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

#: Window of the join in seconds, and how far values may be apart.
WINDOW, DISTANCE = 20.0, 0.25
#: Squares have no index, so each row is compared with every one in the window: comparing is the work, and not
#: writing results, of which there are a hundred thousand times as many at 50 times the rate.
TEXT = f"""
    SELECT /*+ SHED({{strategy}}) */ c1.id AS id1, c2.id AS id2, c3.id AS id3
    FROM cam1 c1
    JOIN cam2 c2 ON (c1.x - c2.x) * (c1.x - c2.x) <= {DISTANCE**2:g}
    JOIN cam3 c3 ON (c1.x - c3.x) * (c1.x - c3.x) <= {DISTANCE**2:g}
        AND (c2.x - c3.x) * (c2.x - c3.x) <= {DISTANCE**2:g}
    WHERE greatest(c1.ts, c2.ts, c3.ts) <= least(c1.ts, c2.ts, c3.ts) + INTERVAL {WINDOW:g} SECONDS
"""
#: Rates at which the search for the highest one begins, and by which factor it goes on.
FIRST, FACTOR = 100.0, 1.5
#: The join keeps up if no more than this many seconds of input wait at the end.
_WAITING = 4.0
#: Seconds for each rate of that search: windows are full after 35.
_SEARCHED = 55.0
_SAMPLE = 4000
#: Seconds that the first micro-batch may take.
_PATIENCE = 180.0


@dataclass(frozen=True, slots=True)
class Overload(Record):
    """One strategy at one rate.

    Attributes:
        strategy: The strategy.
        rate: Rows per second of each of three cameras.
        over: The rate over the highest that `exact` sustains.
        batches: Micro-batches.
        batch_seconds: Median of the last quarter of them.
        settled: That over the median of the middle half.
        waiting: Seconds of input that wait at the end.
        z: Share of the work, at the end.
        results: Results per second, over the last half of the micro-batches.
        from_start: Results per second, over all of the run, in which workers start and windows fill.
        completeness: Delivered share, as reported.
        truth: Delivered share, from the input.
    """

    strategy: str
    rate: float
    over: float
    batches: int
    batch_seconds: float
    settled: float
    waiting: float
    z: float
    results: float
    from_start: float
    completeness: float
    truth: float


def run(spark: SparkSession, seconds: float, progress: Callable[[str], None]) -> list[Overload]:
    """Find the highest rate of `exact`, then shed at 2, 5 and 10 times that."""
    sparkshed.enable(spark)
    rows: list[Overload] = []
    rate, best = FIRST, FIRST
    while True:
        found = measure(spark, "exact", rate, 1.0, min(seconds / 2, _SEARCHED))
        progress(f"exact, {rate:g} rows/s: {found.waiting:.1f} s wait")
        if found.waiting > _WAITING:
            break
        rows.append(found)
        best, rate = rate, round(rate * FACTOR)
    for over in (2, 5, 10):
        for strategy in ("grubjoin", "randomdrop"):
            found = measure(spark, strategy, over * best, over, seconds)
            progress(
                f"{strategy}, {over} R: {found.results:.0f} results/s, {found.completeness:.3f} reported"
            )
            rows.append(found)
    return rows


def measure(spark: SparkSession, strategy: str, rate: float, over: float, seconds: float) -> Overload:
    """Run one strategy for so many seconds after its first micro-batch."""
    with tempfile.TemporaryDirectory(prefix="sparkshed-") as name:
        folder = Path(name)
        with LiveCameras(folder / "input", nonaligned(3), lambda _: rate) as cameras:
            began = time.monotonic()
            with started(spark, strategy, folder, cameras) as query:
                wait_for_rows(query)
                time.sleep(seconds)
                elapsed = time.monotonic() - began
                left = waiting(query, cameras, rate)
        history = sparkshed.history(query)
        # Rows that wait have no results yet, so the truth is that of the rows that were taken.
        taken = [int(history[f"c{number}.arrived"].sum()) for number in (1, 2, 3)]
        truth = cameras.true_results(WINDOW, DISTANCE, _SAMPLE, taken)
    return _summary(strategy, rate, over, history, left, elapsed, truth)


@contextmanager
def started(
    spark: SparkSession, strategy: str, folder: Path, cameras: LiveCameras, **options: str
) -> Iterator[StreamingQuery]:
    """The join of live cameras, running; `options` are those of their files."""
    for own in cameras.folders:
        path = str(own)
        stream = spark.readStream.schema(spark.read.parquet(path).schema).options(**options).parquet(path)
        stream.withWatermark("ts", "2 seconds").createOrReplaceTempView(own.name)
    frame = spark.sql(TEXT.format(strategy=strategy))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime="1 second").start()
    try:
        yield query
    finally:
        query.stop()


def wait_for_rows(query: StreamingQuery) -> None:
    """Until a micro-batch joined something; the first one takes long, as workers start."""
    deadline = time.monotonic() + _PATIENCE
    while not sparkshed.progress(query):
        if not query.isActive or time.monotonic() > deadline:
            why = query.exception() or "the machine is too slow"
            msg = f"no micro-batch ended within {_PATIENCE:g} s: {why}"
            raise RuntimeError(msg)
        time.sleep(0.1)


def waiting(query: StreamingQuery, cameras: LiveCameras, rate: float) -> float:
    """Seconds of input that no finished micro-batch has taken."""
    taken = int(sparkshed.history(query)["c1.arrived"].sum())
    return (cameras.rows - taken) / rate


def _summary(
    strategy: str,
    rate: float,
    over: float,
    history: pd.DataFrame,
    waiting: float,
    seconds: float,
    truth: float,
) -> Overload:
    count = len(history)
    last = history["seconds"].iloc[3 * count // 4 :].median()
    middle = history["seconds"].iloc[count // 4 : 3 * count // 4].median()
    delivered = float(history["results"].sum())
    half = history.iloc[count // 2 :]
    return Overload(
        strategy,
        rate,
        over,
        count,
        float(last),
        float(last / middle),
        waiting,
        float(history["z"].iloc[-1]),
        float(half["results"].sum() / max(half["lasted"].sum(), 1e-9)),
        delivered / seconds,
        float(history["total_completeness"].iloc[-1]),
        delivered / max(1.0, truth),
    )
