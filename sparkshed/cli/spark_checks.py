"""The checks of `sparkshed doctor` that run small jobs on a local Spark."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkshed.cli.checks import Check
from sparkshed.cli.session import ROCKSDB

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import SparkSession


def last_line(error: BaseException) -> str:
    """The line of an error that says most: a Python worker's last, or else the message's first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in reversed(lines):
        if line.split(":")[0].endswith(("Error", "Exception")) and not line.startswith("at "):
            return line
    return lines[0] if lines else traceback.format_exception_only(error)[-1].strip()


def attempt(name: str, job: Callable[[], str], fix: str) -> Check:
    """Run a job that returns what it found; any error makes the check fail."""
    try:
        return Check(name, "ok", job())
    except Exception as error:  # whatever goes wrong is the finding
        return Check(name, "FAIL", last_line(error), fix)


def check_workers(spark: SparkSession, executable: str) -> Check:
    """Whether Python workers run, and have Arrow and the same sparkshed as this process."""

    def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from importlib import import_module
        from importlib.metadata import version

        import pyarrow

        import_module("sparkshed.engine.operator")
        for batch in batches:
            column = pyarrow.array([version("sparkshed")] * batch.num_rows)
            yield pyarrow.RecordBatch.from_arrays([column], names=["version"])

    def job() -> str:
        rows = spark.range(4).mapInArrow(versions, "version string").collect()
        found, own = sorted({row.version for row in rows}), version("sparkshed")
        if found != [own]:
            msg = f"ValueError: workers have sparkshed {' and '.join(found)}, this process has {own}"
            raise ValueError(msg)
        return f"a mapInArrow job ran, with sparkshed {own}"

    fix = f"export PYSPARK_PYTHON={executable}, or install the same sparkshed in the Python of the workers"
    return attempt("python workers", job, fix)


def check_state_store(spark: SparkSession) -> Check:
    """Whether streaming with state in Python runs on the RocksDB state store."""
    fix = (
        f"set spark.sql.streaming.stateStore.providerClass={ROCKSDB}, "
        "and install 'protobuf>=5' and 'pandas>=2.2,<3' for the Python workers"
    )

    def job() -> str:
        spark._jvm.java.lang.Class.forName(ROCKSDB)  # type: ignore[union-attr]
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        with tempfile.TemporaryDirectory(prefix="sparkshed-doctor-", ignore_cleanup_errors=True) as folder:
            rows = _count_with_state(spark, Path(folder))
        if rows != [("a", 2), ("b", 1)]:
            msg = f"ValueError: a streaming query with state returned {rows}"
            raise ValueError(msg)
        return "RocksDB; a transformWithStateInPandas query ran"

    return attempt("state store", job, fix)


def _count_with_state(spark: SparkSession, folder: Path) -> list[tuple[str, int]]:
    """Count words in a streaming query whose counts live in state."""
    import pandas
    from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

    class Counter(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.count = handle.getValueState("count", "n bigint")

        def handleInputRows(
            self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
        ) -> Iterator[pd.DataFrame]:
            old = self.count.get()[0] if self.count.exists() else 0
            new = old + sum(len(batch) for batch in rows)
            self.count.update((new,))
            yield pandas.DataFrame({"word": [key[0]], "n": [new]})

        def close(self) -> None:
            pass

    (folder / "in").mkdir()
    (folder / "in" / "words.txt").write_text("a\nb\na\n", encoding="utf-8")
    counts = (
        spark.readStream.text(str(folder / "in"))
        .groupBy("value")
        .transformWithStateInPandas(Counter(), "word string, n bigint", "Update", "None")
    )
    query = (
        counts.writeStream.format("memory")
        .queryName("sparkshed_doctor")
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(120)
    finally:
        query.stop()
    return sorted((row.word, row.n) for row in spark.table("sparkshed_doctor").collect())
