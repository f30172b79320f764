"""What the project promises about its speed, and what a run of the kernel benchmark reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sparkshed.bench.cases import CASES
from sparkshed.bench.kernels import Row

_KINDS = {case.name: case.kind for case in CASES}


@dataclass(frozen=True, slots=True)
class Target:
    """One promise: `engine` takes at least `least` times as long as sparkshed on `workload`."""

    workload: str
    engine: str
    least: float
    reached: float | None
    note: str | None

    @property
    def met(self) -> bool | None:
        """Whether the run kept it; None if the run cannot tell."""
        return None if self.reached is None else self.reached >= self.least

    def as_dict(self) -> dict[str, object]:
        """The target as plain values."""
        return {**asdict(self), "met": self.met}


#: Runs that are for information: what a user could make of plain Spark by rewriting the statement.
NO_TARGET = ("spark-tuned",)


def least_ratio(kind: str, engine: str) -> float:
    """How far ahead sparkshed is to be.

    On bands the promise is about the text that sparkshed itself gets; of a text that was rewritten for
    DuckDB or Polars by hand it is to be ahead.

    >>> least_ratio("band", "duckdb-same-sql"), least_ratio("cosine", "polars"), least_ratio("band", "duckdb")
    (8, 3, 1)
    """
    if kind == "band" and engine in ("duckdb-same-sql", "spark"):
        return 8 if engine == "duckdb-same-sql" else 5
    return 3 if kind in ("overlap", "cosine") else 1


def targets(rows: Iterable[Row], limit: float) -> list[Target]:
    """The promises that the rows speak about.

    Args:
        rows: Rows of a run.
        limit: Seconds after which a run was stopped; a peer that was stopped took at least as long.
    """
    rows = list(rows)
    seconds = {(row.workload, row.engine): row.seconds for row in rows}
    found = []
    for row in rows:
        if row.engine == row.compared_with or row.engine in NO_TARGET:
            continue
        reached, own = row.ratio_to_sparkshed, seconds.get((row.workload, row.compared_with))
        if row.note and row.note.startswith("stopped: took longer") and own:
            reached = round(limit / own, 2)
        least = least_ratio(_KINDS[row.workload], row.engine)
        found.append(Target(row.workload, row.engine, least, reached, row.note))
    return found
