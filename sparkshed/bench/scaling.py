"""The same streaming join on one core and on two, and on hosts that skew would make uneven.

- `cameras`: three streams whose values are near each other, without an index, so that comparing is the work.
- `keys`: the same with a key, for `hash`.
- `skewed keys`: two streams with a key of which a few values are frequent, on four hosts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import sparkshed
from sparkshed.bench.microbatches import read_files, write_files
from sparkshed.bench.report import Record
from sparkshed.bench.streaming import TEXT
from sparkshed.bench.timing import WrongResult
from sparkshed.planner.diffusion.loads import uneven
from sparkshed.workloads.cameras import camera_streams, camera_table, nonaligned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Starts a session with a master.
Session = Callable[[str], AbstractContextManager["SparkSession"]]

#: Seconds of input in a micro-batch.
_BATCH = 4.0
#: With few of them, hosts would have unequal numbers of keys.
_KEYS, _SKEWED_KEYS = 64, 16
#: Of the frequencies of keys.
_SKEW = 1.0
_ON_KEYS = """
    SELECT /*+ SHED({strategy}) */ c1.id AS id1, c2.id AS id2 FROM cam1 c1 JOIN cam2 c2
    ON c1.k = c2.k AND (c1.x - c2.x) * (c1.x - c2.x) <= 0.01
    AND c1.ts BETWEEN c2.ts - INTERVAL 20 SECONDS AND c2.ts + INTERVAL 20 SECONDS
"""


@dataclass(frozen=True, slots=True)
class Scaled(Record):
    """One routing on so many cores.

    Attributes:
        workload: The workload.
        routing: The option `diffuse`.
        cores: Of the session.
        seconds: All micro-batches but the first.
        results: Results.
        speedup: Seconds on one core over these.
        unevenness: Coefficient of variation of the hosts' work, over all of the run.
        copies: How many times over rows were sent, where a router counts them.
        routing_micros: What the router took for each row.
    """

    workload: str
    routing: str
    cores: int
    seconds: float
    results: int
    speedup: float | None
    unevenness: float
    copies: float | None
    routing_micros: float | None


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    tables: Sequence[pa.Table]
    text: str
    routings: Sequence[str]
    masters: Sequence[int]


def run(session: Session, rate: float, seconds: float, progress: Callable[[str], None]) -> list[Scaled]:
    """Time every routing of every workload, on one core and on two."""
    cases = list(_cases(rate, seconds))
    rows: list[Scaled] = []
    for cores in sorted({cores for case in cases for cores in case.masters}):
        with session(f"local[{cores}]") as spark:
            sparkshed.enable(spark)
            # Workers start, and Spark compiles what it runs.
            _measure(spark, cases[0], cases[0].routings[0], cores)
            for case in cases:
                for routing in case.routings if cores in case.masters else ():
                    row = _measure(spark, case, routing, cores)
                    progress(f"{case.name}, {routing}, {cores} core(s): {row.seconds:.2f} s")
                    rows.append(row)
    return list(_compared(rows))


def _cases(rate: float, seconds: float) -> Iterator[_Case]:
    lags = nonaligned(3)
    cameras = [camera_table(own) for own in camera_streams(rate, seconds, lags.tau, lags.kappa)]
    yield _Case("cameras", cameras, TEXT, ("auto:2", "atr:2", "ctr:2"), (1, 2))
    even = [_keyed(10 * rate, seconds, number, _KEYS, 0.0) for number in range(2)]
    yield _Case("keys", even, _ON_KEYS, ("hash:2", "atr:2", "ctr:2"), (1, 2))
    skewed = [_keyed(2 * rate, seconds, number, _SKEWED_KEYS, _SKEW) for number in range(2)]
    yield _Case("skewed keys", skewed, _ON_KEYS, ("hash:4", "atr:4", "ctr:4"), (2,))


def _keyed(rate: float, seconds: float, seed: int, keys: int, skew: float) -> pa.Table:
    """A stream with keys whose frequencies fall by Zipf's law."""
    generator = np.random.default_rng(seed)
    count = round(rate * seconds)
    times = np.sort(generator.uniform(0, seconds, count) * 1e6).astype(np.int64) + 1_700_000_000_000_000
    shares = 1 / np.arange(1, keys + 1) ** skew
    columns = {
        "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "k": generator.choice(keys, count, p=shares / shares.sum()),
        "x": generator.random(count) * 50,
        "id": np.arange(count),
    }
    return pa.table(columns)


def _measure(spark: SparkSession, case: _Case, routing: str, cores: int) -> Scaled:
    with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as name:
        folder = Path(name)
        times = case.tables[0].column("ts").cast(pa.int64()).to_numpy()
        files = max(2, round((times[-1] - times[0]) / 1e6 / _BATCH))
        write_files(case.tables, files, folder)
        read_files(spark, folder, len(case.tables))
        frame = spark.sql(case.text.format(strategy=f"exact, 'diffuse={routing}'"))
        writer = frame.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        query.awaitTermination()
        history = sparkshed.history(query)
    copies = "copies" in history
    arrived = sum(table.num_rows for table in case.tables)
    return Scaled(
        case.name,
        routing,
        cores,
        float(history["seconds"].iloc[1:].sum()),
        int(history["results"].sum()),
        None,
        uneven(np.sum(history["host_work"].tolist(), axis=0).tolist()),
        float(history["copies"].median()) if copies else None,
        1e6 * float(history["routing_seconds"].sum()) / arrived if copies else None,
    )


def _compared(rows: Sequence[Scaled]) -> Iterator[Scaled]:
    alone = {(row.workload, row.routing): row.seconds for row in rows if row.cores == 1}
    for name in {row.workload for row in rows}:
        counts = {row.routing: row.results for row in rows if row.workload == name}
        if len({row.results for row in rows if row.workload == name}) != 1:
            msg = f"{name}: the routings disagree on the number of results: {counts}"
            raise WrongResult(msg)
    for row in sorted(rows, key=lambda own: own.workload):
        known = alone.get((row.workload, row.routing))
        yield replace(row, speedup=None if known is None else round(known / row.seconds, 2))
