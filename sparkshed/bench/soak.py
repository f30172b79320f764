"""A long run under overload: memory and state must not grow."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.bench.processes import below, resident
from sparkshed.bench.report import Record
from sparkshed.bench.streaming import started, wait_for_rows, waiting
from sparkshed.workloads.cameras import nonaligned
from sparkshed.workloads.live import LiveCameras

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

#: Seconds between two looks at the processes.
_EVERY = 5.0
#: Parts of the run that rows are about.
_PARTS = 10
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Row(Record):
    """One part of the run; figures are medians over it.

    Attributes:
        until: Seconds from the start to its end.
        batch_seconds: Of a micro-batch.
        z: Share of the work.
        completeness: Delivered share, as reported.
        waiting: Seconds of input that wait at its end.
        jvm_mb: Resident memory of Spark's process.
        workers_mb: Resident memory of all Python workers together.
        state_mb: Pieces of windows in the state store.
        window_rows: Rows in the windows.
    """

    until: float
    batch_seconds: float
    z: float
    completeness: float
    waiting: float
    jvm_mb: float
    workers_mb: float
    state_mb: float
    window_rows: float


def run(spark: SparkSession, rate: float, seconds: float, progress: Callable[[str], None]) -> list[Row]:
    """Join live cameras with `grubjoin` at so many rows per second each, for so many seconds."""
    sparkshed.enable(spark)
    java = spark.sparkContext._jvm
    assert java is not None
    jvm = int(java.java.lang.ProcessHandle.current().pid())
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sparkshed-") as name:
        cameras = LiveCameras(Path(name) / "input", nonaligned(3), lambda _: rate, remember=False)
        with cameras, started(spark, "grubjoin", Path(name), cameras, cleanSource="delete") as query:
            wait_for_rows(query)
            began, seen = time.monotonic(), 0
            for part in range(1, _PARTS + 1):
                memory = [_memory(jvm)]
                while time.monotonic() < began + part * seconds / _PARTS:
                    memory.append(_memory(jvm))
                    time.sleep(min(_EVERY, seconds / _PARTS / 2))
                history = sparkshed.history(query)
                left = waiting(query, cameras, rate)
                rows.append(_row(history.iloc[seen:], memory, time.monotonic() - began, left))
                seen = len(history)
                own = rows[-1]
                progress(
                    f"{own.until:.0f} s: batches of {own.batch_seconds:.2f} s, z = {own.z:.3f}, "
                    f"JVM {own.jvm_mb:.0f} MB, workers {own.workers_mb:.0f} MB, state {own.state_mb:.1f} MB"
                )
    return rows


def _row(history: pd.DataFrame, memory: Sequence[tuple[float, float]], until: float, left: float) -> Row:
    jvm, workers = (statistics.median(own) for own in zip(*memory, strict=True))
    middle = history.median(numeric_only=True)
    state = middle["state_bytes"] / _MEGABYTE
    batch, z, share = (float(middle[name]) for name in ("seconds", "z", "completeness"))
    return Row(until, batch, z, share, left, jvm, workers, float(state), float(middle["window_rows"]))


def _memory(jvm: int) -> tuple[float, float]:
    """Resident megabytes of the JVM, and of the Python processes below it."""
    return resident(jvm), sum(map(resident, below(jvm)))
