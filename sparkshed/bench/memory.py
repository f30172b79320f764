"""Peak memory of the engine: for each million results, and for each million rows in the windows.

Each size runs in a process of its own, whose peak the system keeps. What a process needs anyway is
measured in one with almost nothing to do, and subtracted.
"""

from __future__ import annotations

import pickle
import resource
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.bench.cases import Case
from sparkshed.bench.engine import feed, inputs_of
from sparkshed.bench.jobs import Job, call_alone, write_tables
from sparkshed.bench.kernels import Launcher, Say
from sparkshed.bench.report import Record
from sparkshed.engine.operator import JoinOperator

#: Two runs over the same rows: with few results, and with many.
RESULTS = {
    "band": (Case("few", "band", 3, 200, 60, 20, 0.5), Case("many", "band", 3, 200, 60, 20, 2)),
    "equality": (Case("few", "equality", 3, 100, 60, 2, 1), Case("many", "equality", 3, 100, 60, 5, 1)),
    "sets": (Case("few", "overlap", 2, 200, 60, 20, 3), Case("many", "overlap", 2, 200, 60, 20, 1)),
    "vectors": (Case("few", "cosine", 2, 200, 60, 20, 0.9), Case("many", "cosine", 2, 200, 60, 20, 0.05)),
}

#: One stream fills its window, all of it within reach of the other; nothing matches.
WINDOWS = {
    "band": Case("window", "band", 2, 1000, 1000, 1000, 1),
    "equality": Case("window", "equality", 2, 1000, 1000, 1000, 1),
    "sets": Case("window", "overlap", 2, 1000, 1000, 1000, 3),
    "vectors": Case("window", "cosine", 2, 200, 1000, 1000, 0.9),
}
#: Rows that probe the full window, spread over its length, so that all of its index is built.
PROBES = 500

#: Share of the rows that the plan is made from.
_PLANNED = 0.05

#: Rows of a micro-batch that fills the window.
BATCH = 50_000


@dataclass(frozen=True, slots=True)
class Peak(Record):
    """What one kind of join needs beyond a process with nothing to do.

    `payload_mb` is the size of a million rows as Arrow columns, which the windows hold.
    """

    kind: str
    per: str
    millions: float
    peak_mb: float
    mb_per_million: float
    payload_mb: float | None = None


def run(launch: Launcher, scale: float = 1, say: Say = lambda line: None) -> list[Peak]:
    """Measure every kind.

    Args:
        launch: What runs the planning, on Spark.
        scale: A factor for the rates.
        say: Is told each number as soon as it is known.
    """
    found = []
    for kind in RESULTS:
        for peak in (_by_results(launch, kind, scale), _by_rows(launch, kind, scale)):
            say(f"{kind}: {peak.mb_per_million:.1f} MB per million {peak.per}")
            found.append(peak)
    return found


def _by_results(launch: Launcher, kind: str, scale: float) -> Peak:
    few, many = (_joined(launch, case.scaled(scale)) for case in RESULTS[kind])
    millions = (many["results"] - few["results"]) / 1e6
    grown = (many["peak"] - few["peak"]) / 1e6
    return Peak(kind, "results", round(millions, 3), round(grown, 1), round(grown / millions, 2))


def _joined(launch: Launcher, case: Case) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as folder:
        job = Job("plan", case, Path(folder), 1)
        write_tables(case.tables(), job.folder)
        launch(job)
        return call_alone(join, job)


def _by_rows(launch: Launcher, kind: str, scale: float) -> Peak:
    case = WINDOWS[kind].scaled(scale)
    small = case.scaled(_PLANNED)
    with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as folder:
        job = Job("plan", small, Path(folder), 1)
        write_tables(small.tables(), job.folder)
        launch(job)
        idle = _filled(job, replace(case, rate=1))
        full = _filled(job, case)
    millions = (full["rows"] - idle["rows"]) / 1e6
    grown = (full["peak"] - idle["peak"]) / 1e6
    payload = full["payload"] / full["rows"]
    return Peak(
        kind,
        "window rows",
        round(millions, 3),
        round(grown, 1),
        round(grown / millions, 1),
        round(payload, 1),
    )


def _filled(job: Job, case: Case) -> dict[str, int]:
    window, probes = case.tables()
    probes = apart(case.kind, probes.take(np.linspace(0, len(probes) - 1, PROBES).astype(int)))
    write_tables([window, probes], job.folder, BATCH)
    return call_alone(fill, job)


def apart(kind: str, table: pa.Table) -> pa.Table:
    """The rows with values that match none of the other streams'."""
    if kind == "band":
        return table.set_column(1, "x", pc.add(table["x"], 1e6))
    if kind == "equality":
        return table.set_column(1, "k", pc.add(table["k"], 10**6))
    lists = table.column(1).combine_chunks()
    values = lists.flatten()
    other = pc.add(values, 1000) if kind == "overlap" else pc.multiply(values, pa.scalar(-1, values.type))
    moved = pa.ListArray.from_arrays(lists.offsets, other.cast(values.type))
    return table.set_column(1, table.column_names[1], moved)


def join(job: Job) -> dict[str, int]:
    """Run a planned job on the engine: its results, and the peak of the process in bytes."""
    spec, master = pickle.loads(job.plan.read_bytes())
    results = feed(JoinOperator(spec), master, inputs_of(spec.streams, job.tables()))
    return {"results": results, "peak": peak_bytes()}


def fill(job: Job) -> dict[str, int]:
    """Fill the window of the first stream batch by batch, then probe it with the second."""
    spec, _ = pickle.loads(job.plan.read_bytes())
    operator = JoinOperator(spec)
    rows = payload = 0
    for batch in _batches(job.folder / "0.arrow"):
        rows, payload = rows + batch.num_rows, payload + batch.nbytes
        deque(operator.process({0: inputs_of(spec.streams[:1], [batch])[0]}), maxlen=0)
    for batch in _batches(job.folder / "1.arrow"):
        deque(operator.process({1: inputs_of(spec.streams[1:], [batch])[0]}), maxlen=0)
    return {"rows": rows, "payload": payload, "peak": peak_bytes()}


def _batches(path: Path) -> Iterator[pa.Table]:
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])


def peak_bytes() -> int:
    """Most memory that this process has had, in bytes.

    On Linux, getrusage also counts what the parent had when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
