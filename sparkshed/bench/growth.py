"""How the cost of the band join grows with the rate and with the window.

The engine runs on one thread, without Spark. An output-bound join has a cost in proportion to its
results, so the exponent of the exact number of results is the one that the others are held against.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparkshed.bench.cases import Case
from sparkshed.bench.engine import feed, inputs_of
from sparkshed.bench.jobs import Job, call_alone, write_tables
from sparkshed.bench.kernels import Launcher, Say
from sparkshed.bench.report import Record
from sparkshed.bench.timing import Run, median, timed
from sparkshed.engine.operator import JoinOperator

RATES = (100, 200, 500, 1000, 2000)
WINDOWS = (10, 20, 40, 80, 160)

#: A cell is run three times if it takes less than this many seconds.
_SHORT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Cell(Record):
    """One size of the join, and what it cost. `work` is the engine's own measure, counted exactly."""

    varied: str
    rate: float
    window: float
    seconds: float
    results: int
    comparisons: int
    work: int


@dataclass(frozen=True, slots=True)
class Exponents(Record):
    """Exponents p of cost = c * size**p, fitted over the cells in which `varied` differs.

    `limit` is that of the results for sizes without end.
    """

    varied: str
    seconds: float
    work: float
    results: float
    limit: float


def cases(scale: float = 1) -> list[tuple[str, Case]]:
    """The sizes; `scale` is a factor for the rates."""
    by_rate = [("rate", Case("growth", "band", 3, rate * scale, 30, 20, 1)) for rate in RATES]
    by_window = [("window", Case("growth", "band", 3, 100 * scale, 320, window, 1)) for window in WINDOWS]
    return by_rate + by_window


def run(launch: Launcher, scale: float = 1, say: Say = lambda line: None) -> list[Cell]:
    """Plan and run the join in every size.

    Args:
        launch: What runs the planning, on Spark.
        scale: A factor for the rates.
        say: Is told each time as soon as it is known.
    """
    cells = []
    for varied, case in cases(scale):
        with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as folder:
            write_tables(case.tables(), Path(folder))
            job = Job("plan", case, Path(folder), 1)
            launch(job)
            cell = Cell(varied, case.rate, case.window, **call_alone(measure, job))
        say(f"rate {cell.rate:g}, window {cell.window:g} s: {cell.seconds:.3f} s")
        cells.append(cell)
    return cells


def measure(job: Job) -> dict[str, float]:
    """Run a planned job on the engine: seconds, results and exact work."""
    spec, master = pickle.loads(job.plan.read_bytes())
    inputs = inputs_of(spec.streams, job.tables())
    runs: list[Run] = []
    while len(runs) < 3 and (not runs or runs[0].seconds < _SHORT_SECONDS):
        operator = JoinOperator(spec)
        runs.append(timed(lambda joiner=operator: feed(joiner, master, inputs)))
    counted = operator.statistics
    return {
        "seconds": round(median(runs), 4),
        "results": runs[0].results,
        "comparisons": counted.comparisons,
        "work": counted.work,
    }


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Least squares of log cost against log size.

    >>> round(exponent([1, 10, 100], [3, 300, 30000]), 6)
    2.0
    """
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(slope)


def exponents(cells: Sequence[Cell], m: int = 3) -> list[Exponents]:
    """Fitted exponents. Results of m streams grow with rate**m and, in long windows, window**(m-1)."""
    found = []
    for varied, limit in (("rate", m), ("window", m - 1)):
        varying = [cell for cell in cells if cell.varied == varied]
        sizes = [getattr(cell, varied) for cell in varying]
        fits = {
            cost: round(exponent(sizes, [getattr(cell, cost) for cell in varying]), 2)
            for cost in ("seconds", "work", "results")
        }
        found.append(Exponents(varied, **fits, limit=limit))
    return found
