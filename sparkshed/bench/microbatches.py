"""Streaming joins beside what Spark itself can do: the same files, the same micro-batches, in one run.

- `band`: three streams, values within a distance. Spark has no streaming join without an equality, so an
  expert gives it one: every value is put into buckets as wide as the distance, and all streams but the first
  into the neighbouring buckets, too.
- `equality`: two streams with a key, which Spark's own stream-stream join can do; many rows, for the rate
  that each side sustains.
- `idle`: the same with a few rows, for what a micro-batch costs at least.

A query of sparkshed writes its checkpoint in a way that starts no processes. `spark-plain-files` is Spark's
own join with that setting, which few know.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sparkshed
from sparkshed.bench.report import Record
from sparkshed.bench.timing import WrongResult
from sparkshed.spark.streaming.starting import PLAIN_FILES, set_for_now
from sparkshed.workloads.cameras import camera_sql, camera_streams, camera_table, nonaligned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Seconds that rows of a result may be apart.
WINDOW = 20
_INTERVAL = f"INTERVAL {WINDOW} SECONDS"
_START = 1_700_000_000
_PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PLAIN = "spark-plain-files"
_DEFAULT_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@dataclass(frozen=True, slots=True)
class Row(Record):
    """One engine on one workload.

    Attributes:
        workload: The workload.
        engine: `spark`, `spark-plain-files` or `sparkshed`.
        batches: Micro-batches with rows.
        seconds: From SQL text, or from DataFrame operations, to the end of the last micro-batch; median.
        batch_seconds: Of a micro-batch with rows, without the first one; median.
        rows_per_second: Rows of all streams together, over the time of all micro-batches but the first.
        results: Results.
        ratio_to_sparkshed: Seconds over those of sparkshed; for `idle`, seconds per micro-batch, and for
            `equality` the rate of sparkshed over this one.
    """

    workload: str
    engine: str
    batches: int
    seconds: float
    batch_seconds: float | None
    rows_per_second: float | None
    results: int
    ratio_to_sparkshed: float = 1.0


@dataclass(frozen=True, slots=True)
class _Case:
    """A workload: tables, in how many files, and the two sides."""

    name: str
    tables: Sequence[pa.Table]
    files: int
    sides: dict[str, Callable[[SparkSession], DataFrame]]
    #: What is compared.
    figure: str


def run(
    spark: SparkSession, rate: float, seconds: float, repeats: int, progress: Callable[[str], None]
) -> list[Row]:
    """Time all workloads; the first run of each side, which starts workers, is left out."""
    sparkshed.enable(spark)
    rows: list[Row] = []
    for case in _cases(rate, seconds):
        found: dict[str, list[Row]] = {engine: [] for engine in case.sides}
        with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as folder:
            write_files(case.tables, case.files, Path(folder))
            for turn in range(repeats + 1):
                for engine, frame in case.sides.items():
                    own = _measure(spark, case, engine, frame, Path(folder), turn)
                    progress(f"{case.name}, {engine}: {own.seconds:.2f} s{' (warm-up)' if not turn else ''}")
                    if turn:
                        found[engine].append(own)
        rows += _compared(case, {engine: _median(own) for engine, own in found.items()})
    return rows


def _cases(rate: float, seconds: float) -> Iterator[_Case]:
    lags = nonaligned(3)
    cameras = [camera_table(own) for own in camera_streams(rate, seconds, lags.tau, lags.kappa)]
    band = _sides(rewritten_band, camera_sql(3, hint="SHED(exact)"))
    yield _Case("band, one batch", cameras, 1, band, "seconds")
    yield _Case(f"band, {seconds:g} batches", cameras, round(seconds), band, "seconds")
    both = _sides(plain_equality, _EQUALITY.format("SHED(exact)"))
    yield _Case("equality", keyed(2, 100 * rate, 20), 20, both, "rows_per_second")
    yield _Case("idle", keyed(2, 10, 30), 30, both, "batch_seconds")


def _sides(
    plain: Callable[[SparkSession], DataFrame], text: str
) -> dict[str, Callable[[SparkSession], DataFrame]]:
    return {"spark": plain, _PLAIN: plain, "sparkshed": lambda spark: spark.sql(text)}


_EQUALITY = (
    "SELECT /*+ {} */ c1.id AS i, c2.id AS j, c1.ts AS t, c2.x AS x FROM cam1 c1 JOIN cam2 c2 "
    f"ON c1.k = c2.k AND c1.ts BETWEEN c2.ts - {_INTERVAL} AND c2.ts + {_INTERVAL}"
)


def plain_equality(spark: SparkSession) -> DataFrame:
    """Spark's own stream-stream join."""
    one = spark.table("cam1").selectExpr("id AS i", "ts AS t", "k AS k1")
    two = spark.table("cam2").selectExpr("id AS j", "ts AS t2", "k AS k2", "x")
    both = one.join(two, _expr(f"k1 = k2 AND t BETWEEN t2 - {_INTERVAL} AND t2 + {_INTERVAL}"))
    return both.select("i", "j", "t", "x")


def rewritten_band(spark: SparkSession) -> DataFrame:
    """The band join as chained equality joins on buckets."""
    bucket = "CAST(floor(x) AS BIGINT)"
    near = f"explode(array({bucket} - 1, {bucket}, {bucket} + 1))"
    one = spark.table("cam1").selectExpr("ts AS t1", "x AS x1", "id AS id1", f"{bucket} AS k1")
    two = spark.table("cam2").selectExpr("ts AS t2", "x AS x2", "id AS id2", f"{near} AS k2")
    three = spark.table("cam3").selectExpr("ts AS t3", "x AS x3", "id AS id3", f"{near} AS k3")
    pair = one.join(two, _expr(f"k1 = k2 AND abs(x1 - x2) <= 1 AND {_within('t1', 't2')}"))
    # A stateful operator takes one time with a watermark.
    pair = pair.withColumn("t2", _expr("timestamp_micros(unix_micros(t2))"))
    last = f"abs(x1 - x3) <= 1 AND abs(x2 - x3) <= 1 AND {_within('t3', 't1')} AND {_within('t3', 't2')}"
    return pair.join(three, _expr(f"k1 = k3 AND {last}")).select("id1", "id2", "id3")


def _within(one: str, other: str) -> str:
    return f"{one} BETWEEN {other} - {_INTERVAL} AND {other} + {_INTERVAL}"


def _expr(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def keyed(streams: int, rate: float, seconds: float, seed: int = 0) -> list[pa.Table]:
    """Streams of rows with keys, of which about one in the window of another stream has the same."""
    generator = np.random.default_rng(seed)
    tables = []
    for _ in range(streams):
        count = round(rate * seconds)
        times = np.sort(generator.uniform(0, seconds, count) * 1e6).astype(np.int64) + _START * 1_000_000
        columns = {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": generator.integers(0, max(1, round(2 * WINDOW * rate)), count),
            "x": generator.random(count),
            "id": np.arange(count),
        }
        tables.append(pa.table(columns))
    return tables


def write_files(tables: Sequence[pa.Table], files: int, folder: Path) -> None:
    """Each table as files that a stream reads one after another, in `cam1`, `cam2` and so on."""
    for number, table in enumerate(tables, 1):
        own = folder / f"cam{number}"
        own.mkdir()
        for part in range(files):
            first, last = (place * table.num_rows // files for place in (part, part + 1))
            path = own / f"{part:04}.parquet"
            pq.write_table(table.slice(first, last - first), path)
            os.utime(path, (_START + part, _START + part))


def _measure(
    spark: SparkSession,
    case: _Case,
    engine: str,
    frame: Callable[[SparkSession], DataFrame],
    folder: Path,
    turn: int,
) -> Row:
    from pyspark.sql import functions as F

    read_files(spark, folder, len(case.tables))
    start = time.perf_counter()
    with _tuned(spark, plain_files=engine == _PLAIN):
        counted = frame(spark).observe("counted", F.count(F.lit(1)).alias("results"))
        writer = counted.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / f"checkpoint-{engine}-{turn}")).start()
        query.awaitTermination()
    seconds = time.perf_counter() - start
    batches = [own for own in query.recentProgress if own.numInputRows]
    results = sum(own.observedMetrics["counted"].results for own in query.recentProgress)
    later = [own.durationMs["triggerExecution"] / 1000 for own in batches[1:]]
    rows = sum(own.numInputRows for own in batches[1:])
    return Row(
        case.name,
        engine,
        len(batches),
        seconds,
        statistics.median(later) if later else None,
        rows / sum(later) if later else None,
        results,
    )


def read_files(spark: SparkSession, folder: Path, streams: int) -> None:
    """Views of the files, one of each stream in a micro-batch."""
    for number in range(1, streams + 1):
        path = str(folder / f"cam{number}")
        stream = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
        stream.parquet(path).withWatermark("ts", "1 second").createOrReplaceTempView(f"cam{number}")


@contextmanager
def _tuned(spark: SparkSession, *, plain_files: bool) -> Iterator[None]:
    """What suits Spark's own joins: its default store in memory, and as many partitions as cores.

    A query of sparkshed brings its own settings.
    """
    wanted = {_PARTITIONS: str(spark.sparkContext.defaultParallelism), _PROVIDER: _DEFAULT_STORE}
    with set_for_now(spark, wanted | (PLAIN_FILES if plain_files else {})):
        yield


def _median(rows: Sequence[Row]) -> Row:
    return sorted(rows, key=lambda row: row.seconds)[len(rows) // 2]


def _compared(case: _Case, found: dict[str, Row]) -> Iterator[Row]:
    if len({row.results for row in found.values()}) != 1:
        counts = {engine: row.results for engine, row in found.items()}
        msg = f"{case.name}: the engines disagree on the number of results: {counts}"
        raise WrongResult(msg)
    own = getattr(found["sparkshed"], case.figure)
    for row in found.values():
        theirs = getattr(row, case.figure)
        ratio = own / theirs if case.figure == "rows_per_second" else theirs / own
        yield replace(row, ratio_to_sparkshed=round(ratio, 2))
