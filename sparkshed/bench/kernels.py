"""Every kind of join on this engine and on its peers, in one run."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sparkshed.bench.cases import CASES, Case
from sparkshed.bench.jobs import Job, Outcome, Worker, write_tables
from sparkshed.bench.report import Record
from sparkshed.bench.timing import agreed, median

#: Each engine and the run of sparkshed that it is compared with: the one with the same means.
ENGINES = {
    "sparkshed-engine": "sparkshed-engine",
    "sparkshed-sql": "sparkshed-sql",
    "duckdb": "sparkshed-engine",
    "duckdb-same-sql": "sparkshed-engine",
    "polars": "sparkshed-engine",
    "spark": "sparkshed-sql",
    "spark-tuned": "sparkshed-sql",
}
#: Engines that need a Spark session; `plan` makes the plan that the engine API runs.
ON_SPARK = ("plan", "sparkshed-sql", "spark", "spark-tuned")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row(Record):
    """One engine on one workload.

    `ratio_to_sparkshed` is its time divided by that of the engine in `compared_with`: above 1,
    sparkshed is faster. `note` says why there is no time.
    """

    workload: str
    engine: str
    seconds: float | None
    results: int | None
    ratio_to_sparkshed: float | None
    compared_with: str
    note: str | None = None


class Launcher(Protocol):
    """Something that runs jobs."""

    def __call__(self, job: Job) -> Outcome:
        """Run the job to its end, or until it takes too long."""
        ...


class Processes:
    """Runs each job in a process of its own; those on Spark share one, as starting Spark is slow."""

    def __init__(self, master: str = "local[2]", limit: float = 600) -> None:
        self._master = master
        self._limit = limit
        self._spark: Worker | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        if self._spark is not None:
            self._spark.close()

    def __call__(self, job: Job) -> Outcome:
        """Run the job."""
        path = job.folder / "job.pickle"
        path.write_bytes(pickle.dumps(job))
        if job.engine in ON_SPARK:
            if self._spark is None or not self._spark.alive:
                self._spark = Worker(self._master)
            return self._spark.run(path, self._limit)
        with ExitStack() as stack:
            worker = Worker()
            stack.callback(worker.close)
            return worker.run(path, self._limit)


def run(
    launch: Launcher,
    cases: Iterable[Case] = CASES,
    engines: Sequence[str] = tuple(ENGINES),
    repeats: int = 3,
    say: Say = lambda line: None,
) -> list[Row]:
    """Time the engines on the workloads.

    Args:
        launch: What runs the jobs.
        cases: The workloads.
        engines: Names of :data:`ENGINES`. Those with `same-sql` run only where the workload has it.
        repeats: Runs of each engine; the median counts. Long runs are not repeated.
        say: Is told each time as soon as it is known.

    Raises:
        WrongResult: If engines disagree on the number of results.
    """
    rows = []
    for case in cases:
        say(f"{case.name}: {case.title}")
        with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as folder:
            write_tables(case.tables(), Path(folder))
            outcomes = _measure(launch, case, Path(folder), engines, repeats, say)
        rows += rows_of(case.name, outcomes)
    return rows


def _measure(
    launch: Launcher, case: Case, folder: Path, engines: Sequence[str], repeats: int, say: Say
) -> dict[str, Outcome]:
    if "sparkshed-engine" in engines:
        launch(Job("plan", case, folder, 1))
    outcomes = {}
    for engine in engines:
        if engine.endswith("-same-sql") and not case.same_sql:
            continue
        outcome = launch(Job(engine, case, folder, repeats))
        found = f"{median(outcome.runs):.3f} s" if outcome.runs else outcome.note
        say(f"  {engine}: {found}")
        outcomes[engine] = outcome
    return outcomes


def rows_of(workload: str, outcomes: dict[str, Outcome]) -> list[Row]:
    """Medians and ratios of one workload.

    >>> from sparkshed.bench.timing import Run
    >>> fast, slow = Outcome([Run(1.0, 5)]), Outcome([Run(3.0, 5)])
    >>> [row.ratio_to_sparkshed for row in rows_of("w", {"sparkshed-engine": fast, "duckdb": slow})]
    [1.0, 3.0]
    """
    runs = {engine: outcome.runs for engine, outcome in outcomes.items() if outcome.runs}
    if runs:
        agreed(workload, runs)
    seconds = {engine: median(found) for engine, found in runs.items()}
    rows = []
    for engine, outcome in outcomes.items():
        base, own = seconds.get(ENGINES[engine]), seconds.get(engine)
        rows.append(
            Row(
                workload,
                engine,
                None if own is None else round(own, 4),
                outcome.runs[0].results if outcome.runs else None,
                None if own is None or base is None else round(own / base, 2),
                ENGINES[engine],
                outcome.note,
            )
        )
    return rows
