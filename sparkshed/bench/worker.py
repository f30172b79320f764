"""The process behind :class:`sparkshed.bench.jobs.Worker`: paths of jobs in, one line of JSON per run out.

Its argument is the Spark master. Without one it has no Spark session, and runs on one thread.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparkshed.bench import duckdb_peer, engine, polars_peer, spark_side
from sparkshed.bench.jobs import Job
from sparkshed.bench.timing import Run, repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_job(job: Job, spark: SparkSession | None = None) -> Iterator[Run]:
    """Load the tables, then time the engine of the job."""
    tables = job.tables()
    if job.engine in ONE_THREAD_ENGINES:
        yield from repeated(ONE_THREAD_ENGINES[job.engine](job, tables), job.repeats)
        return
    assert spark is not None
    with spark_side.views(spark, job.case, tables):
        if job.engine == "plan":
            spark_side.save_plan(spark, job.case, job.plan)
            return
        join = spark_side.joins(spark)[job.engine]
        yield from repeated(lambda: join(job.case), job.repeats)


ONE_THREAD_ENGINES: dict[str, Callable[[Job, list[pa.Table]], Callable[[], int]]] = {
    "sparkshed-engine": lambda job, tables: engine.prepare(job.plan, tables),
    "duckdb": lambda job, tables: duckdb_peer.prepare(job.case, tables),
    "duckdb-same-sql": lambda job, tables: duckdb_peer.prepare(job.case, tables, same_sql=True),
    "polars": lambda job, tables: polars_peer.prepare(job.case, tables),
}


def main() -> None:
    """Serve jobs until standard input ends."""
    # Libraries may print; the answers keep a channel of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    with _session(sys.argv[1:]) as spark:
        if spark is not None:
            spark_side.warm_up(spark)
        say({"ready": True})
        for line in sys.stdin:
            task = pickle.loads(Path(line.strip()).read_bytes())
            if isinstance(task, Job):
                say(_serve(task, spark, say))
            else:
                say({"value": task.function(*task.arguments)})


def _session(master: list[str]) -> AbstractContextManager[SparkSession | None]:
    if not master:
        pa.set_cpu_count(1)
        return nullcontext()
    from sparkshed.cli.session import local_session

    return local_session(master[0])


def _serve(job: Job, spark: SparkSession | None, say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    try:
        for run in run_job(job, spark):
            say(run._asdict())
    except Exception as error:
        if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
            return {"note": f"out of memory: {type(error).__name__}"}
        raise
    return {"done": True}


if __name__ == "__main__":
    main()
