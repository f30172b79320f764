"""What each policy of limited windows costs per row, beside plain FIFO, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sparkshed.bench.report import Record
from sparkshed.experiments.windowed import POLICIES, Data, limit_of, run
from sparkshed.workloads.bursty import market_tables, renewal_tables

#: The share of the rows in the windows that there is room for.
ROOM = 0.2


@dataclass(frozen=True, slots=True)
class Cost(Record):
    """One policy on one workload.

    Attributes:
        workload: What is joined.
        policy: Who leaves; `none` is the exact join of the same rows.
        rows: Rows that the windows may hold.
        micros: Microseconds per arriving row: all of the operator, in batches, the median of the runs.
        over_fifo: That over the one of FIFO.
        results: Results per arriving row.
    """

    workload: str
    policy: str
    rows: int
    micros: float
    over_fifo: float
    results: float


def workloads(scale: float) -> list[Data]:
    """A market of 500 symbols, and streams of 2,000 values, which have far fewer results."""
    count = max(200, round(12_000 * scale))
    return [
        Data("values", renewal_tables([0, 1], count, 120.0, 2_000), 30.0),
        Data("market", market_tables(2, 120.0, 0, 200.0 * scale), 60.0),
    ]


def policies(scale: float, repeats: int, progress: Callable[[str], None]) -> list[Cost]:
    """Run all of them in turn, several times."""
    rows: list[Cost] = []
    for data in workloads(scale):
        count = sum(map(len, data.tables))
        limit = replace(limit_of(data, ROOM), unified=True)
        times: dict[str, list[float]] = {}
        found: dict[str, int] = {}
        for _ in range(repeats):
            for policy in ("none", *POLICIES):
                began = time.perf_counter()
                output = run(data, None if policy == "none" else replace(limit, policy=policy))
                times.setdefault(policy, []).append(time.perf_counter() - began)
                found[policy] = output.results
            progress(
                f"{data.name}: {', '.join(f'{p} {1e6 * t[-1] / count:.0f} us' for p, t in times.items())}"
            )
        median = {policy: statistics.median(own) for policy, own in times.items()}
        rows += [
            Cost(
                data.name,
                policy,
                0 if policy == "none" else limit.limit,
                1e6 * median[policy] / count,
                median[policy] / median["fifo"],
                found[policy] / count,
            )
            for policy in sorted(median, key=median.__getitem__)
        ]
    return rows
