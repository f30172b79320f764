"""Files that arrive one after another, as a stream and as a table."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from random import Random
from shutil import copy2
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from sparkshed.planner.guide import Guide
from sparkshed.planner.streaming import Report

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def rows_of(rng: Random, stream: int, count: int, seconds: float) -> pa.Table:
    """Rows of many types, in the order of time; some values are missing."""
    times = sorted(START + int(rng.random() * seconds * SECOND) for _ in range(count))

    def some(value):
        return None if rng.random() < 0.05 else value

    columns = {
        "id": pa.array(range(1000 * stream, 1000 * stream + count), pa.int64()),
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "k": pa.array([some(rng.randrange(6)) for _ in times], pa.int32()),
        "x": pa.array([some(rng.random() * 20) for _ in times], pa.float64()),
        "s": pa.array([some(rng.choice(["a", "b", "ä", ""])) for _ in times], pa.string()),
        "tags": pa.array([some(rng.sample(range(9), 3)) for _ in times], pa.list_(pa.int32())),
        "v": pa.array([[rng.random() for _ in range(3)] for _ in times], pa.list_(pa.float32())),
    }
    return pa.table(columns)


def disordered(rng: Random, table: pa.Table, seconds: float) -> pa.Table:
    """The rows in an order that is off by so many seconds at most."""
    times = table.column("ts").cast(pa.int64()).to_numpy()
    late = times + np.array([int(rng.random() * seconds * SECOND) for _ in times])
    return table.take(pa.array(np.argsort(late, kind="stable")))


def write(folder: Path, table: pa.Table, sizes: list[int]) -> None:
    """Files of so many rows each; the last one has what is left. Sources read them in this order."""
    folder.mkdir(parents=True)
    bounds = [0, *np.cumsum(sizes).tolist(), table.num_rows]
    for number, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False)):
        path = folder / f"{number:05}.parquet"
        pq.write_table(table.slice(low, max(0, high - low)), path)
        os.utime(path, (1e9 + number, 1e9 + number))


def cuts(rng: Random, rows: int, files: int) -> list[int]:
    """Random sizes of all files but the last."""
    places = sorted(rng.randrange(rows + 1) for _ in range(files - 1))
    return [high - low for low, high in zip([0, *places], places, strict=False)]


def cuts_by_time(table: pa.Table, seconds: float, files: int) -> list[int]:
    """Sizes of all files but the last, cut where the clock says: rows arrive in the order of time."""
    times = table.column("ts").cast(pa.int64()).to_numpy() - START
    ends = [round(number * seconds / files * SECOND) for number in range(files)]
    return np.diff(np.searchsorted(times, ends)).tolist()


def committed(checkpoint: Path) -> int:
    """How many micro-batches have ended."""
    commits = checkpoint / "commits"
    return sum(own.name.isdigit() for own in commits.iterdir()) if commits.exists() else 0


def two_streams(folder: Path) -> Path:
    """Streams `a` and `b` of four files each, in order."""
    rng = Random(7)
    for number, name in enumerate("ab"):
        write(folder / name, rows_of(rng, number, 160, 24), [40, 40, 40])
    return folder


def copied(source: Path, target: Path, numbers: range) -> None:
    """Let some of these files arrive elsewhere, in the same order."""
    for name, number in product("ab", numbers):
        (target / name).mkdir(parents=True, exist_ok=True)
        copy2(source / name / f"{number:05}.parquet", target / name)


def schema_of(folder: Path) -> StructType:
    """The schema of files, without a job of Spark's that reads it."""
    return from_arrow_schema(pq.read_schema(min(folder.glob("*.parquet"))))


def as_tables(spark: SparkSession, folder: Path, names: list[str]) -> None:
    """Views that read everything."""
    for name in names:
        frame = spark.read.schema(schema_of(folder / name)).parquet(str(folder / name))
        frame.createOrReplaceTempView(name)


def as_streams(spark: SparkSession, folder: Path, names: list[str], delay: str | None = "2 seconds") -> None:
    """Views that read one file in each micro-batch."""
    for name in names:
        reader = spark.readStream.schema(schema_of(folder / name)).option("maxFilesPerTrigger", 1)
        frame = reader.parquet(str(folder / name))
        if delay is not None:
            frame = frame.withWatermark("ts", delay)
        frame.createOrReplaceTempView(name)


def restless(rng: Random) -> Callable[..., dict[str, Any] | None]:
    """An `observe` for guides that change their minds after every micro-batch, whatever hosts report."""

    def observe(self: Guide, reports: Sequence[Report], ended: float) -> dict[str, Any] | None:
        if not any(count["arrived"] for own in reports for count in own.streams):
            # What is told makes another micro-batch.
            return None
        self._number += 1
        hosts, m = self._plan.hosts.count, len(self._plan.spec.streams)
        return {
            "number": self._number,
            "loads": [rng.random() for _ in range(hosts)],
            "length": rng.choice([1, 3, 10]),
            "master": rng.choice([own for own in range(m) if not self._plan.static[own]]),
            "matches": [[3 * rng.random() for _ in range(m)] for _ in range(m)],
            "climber": self._climber.notes(),
        }

    return observe


def multiset(frame: DataFrame) -> Counter:
    """The rows of a DataFrame, whatever is in them."""
    return Counter(repr(row.asDict(recursive=True)) for row in frame.collect())


def run(frame: DataFrame, folder: Path, **trigger: Any) -> DataFrame:
    """The rows that a streaming query finds in all files that are there, with `availableNow` by default."""
    sink = f"out_{uuid.uuid4().hex}"
    writer = frame.writeStream.format("memory").queryName(sink)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(**(trigger or {"availableNow": True})).start()
    if "processingTime" in trigger:
        query.processAllAvailable()
        query.stop()
    else:
        query.awaitTermination()
    return frame.sparkSession.table(sink)
