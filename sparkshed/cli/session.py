"""A local Spark session for the commands."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sparkshed.cli.errors import CliError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The state store that streaming with state in Python needs.
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def settings(master: str, scratch: str, shuffle_partitions: int = 4) -> dict[str, str]:
    """What makes Spark quiet, small and repeatable on one machine.

    Args:
        master: Spark master, such as `local[2]`.
        scratch: A folder for what Spark leaves behind.
        shuffle_partitions: Tasks after a shuffle; Spark's own 200 are for clusters.
    """
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.master": master,
        "spark.app.name": "sparkshed",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j}",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(Path(scratch) / "warehouse"),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        # Python workers answer at once; over TCP a short task waits 40 ms for an acknowledgement.
        "spark.python.unix.domain.socket.enabled": "true",
    }


def use_compiled_pyspark() -> None:
    """Let the Python processes that Spark starts import the installed PySpark, unless SPARK_HOME is set.

    Spark puts the zip file in its home in front of that, and a process compiles anew what it imports from a
    zip file, for a third of a second. So this makes a home without it, which lasts as long as this process.
    """
    package = find_spec("pyspark")
    if package is None or package.origin is None or "SPARK_HOME" in os.environ:
        return
    parts = [Path(package.origin).with_name(name) for name in ("bin", "jars")]
    if all(part.is_dir() for part in parts):
        home = tempfile.mkdtemp(prefix="sparkshed-home-")
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        for part in parts:
            Path(home, part.name).symlink_to(part)
        os.environ["SPARK_HOME"] = home


@contextmanager
def _aside(log: Path | None) -> Iterator[None]:
    """Let processes that are started meanwhile write their errors into a file."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def local_session(
    master: str = "local[*]",
    *,
    worker_python: str = sys.executable,
    extra: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Iterator[SparkSession]:
    """A local session that is stopped at the end of the block.

    Args:
        master: Spark master.
        worker_python: The interpreter that runs Python workers.
        extra: More Spark settings; they win over the defaults.
        quiet: Whether what Spark's processes write to standard error is kept aside: PySpark tells there of
            every Python worker of a streaming query. What goes wrong in a query is raised anyway.

    Raises:
        CliError: If pyspark is missing or Spark does not start.
    """
    os.environ["PYSPARK_PYTHON"] = worker_python
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # With one arena for each of hundreds of threads, memory that RocksDB has freed is never handed back.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    if worker_python == sys.executable:
        use_compiled_pyspark()
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        msg = f"{error}. Install Spark's Python package: pip install 'sparkshed[spark]'"
        raise CliError(msg) from error
    with tempfile.TemporaryDirectory(prefix="sparkshed-", ignore_cleanup_errors=True) as scratch:
        builder = SparkSession.builder
        for key, value in {**settings(master, scratch), **(extra or {})}.items():
            builder = builder.config(key, value)
        log = Path(scratch, "stderr") if quiet else None
        try:
            with _aside(log):
                spark = builder.getOrCreate()
        except PySparkRuntimeError as error:
            if log is not None:
                print(log.read_text(errors="replace"), file=sys.stderr)
            msg = f"Spark did not start: {error} Run `sparkshed doctor --quick` to see why."
            raise CliError(msg) from error
        spark.sparkContext.setLogLevel("ERROR")
        # PySpark logs every error in a query as JSON with the JVM's stack, and then raises it.
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            yield spark
        finally:
            spark.stop()
