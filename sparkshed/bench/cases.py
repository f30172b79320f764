"""The workloads of the kernel benchmark: generated tables, and the join over them in Spark's SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from sparkshed.workloads.cameras import camera_sql, camera_streams, camera_table, nonaligned
from sparkshed.workloads.keyed import keyed_sql, keyed_tables
from sparkshed.workloads.points import point_sql, point_tables
from sparkshed.workloads.sets import set_sql, set_tables, weighted_sql, weighted_tables
from sparkshed.workloads.vectors import vector_sql, vector_tables


@dataclass(frozen=True, slots=True)
class Case:
    """One workload.

    Attributes:
        name: How it is called on the command line and in the rows.
        kind: What is joined, a key of :data:`KINDS`.
        m: Number of streams.
        rate: Rows per second of each stream.
        seconds: Length of the streams.
        window: Length of the window in seconds.
        limit: What the condition compares with: a difference, a number of items, a similarity.
        same_sql: Whether peers also run the text that sparkshed runs.
    """

    name: str
    kind: str
    m: int
    rate: float
    seconds: float
    window: float
    limit: float
    same_sql: bool = False

    @property
    def relation(self) -> str:
        """Name of the views, without the number."""
        return KINDS[self.kind].relation

    @property
    def title(self) -> str:
        """The workload in words."""
        size = f"{self.rate:g} rows/s x {self.seconds:g} s, window {self.window:g} s"
        return f"{self.m}-way {KINDS[self.kind].title.format(self.limit)}, {size}"

    def tables(self) -> tuple[pa.Table, ...]:
        """Generate the streams."""
        return KINDS[self.kind].tables(self)

    def sql(self, hint: str | None = None) -> str:
        """The join as one writes it for Spark."""
        return KINDS[self.kind].sql(self, hint)

    def scaled(self, scale: float) -> Case:
        """The same with `scale` times the rate, in whole rows per second.

        >>> CASES[0].scaled(0.1).rate
        20
        """
        return replace(self, rate=max(1, round(self.rate * scale)))


@dataclass(frozen=True, slots=True)
class Kind:
    """How the workloads of one kind are made."""

    relation: str
    title: str
    tables: Callable[[Case], tuple[pa.Table, ...]]
    sql: Callable[[Case, str | None], str]


def _cameras(case: Case) -> tuple[pa.Table, ...]:
    cameras = nonaligned(case.m)
    streams = camera_streams(case.rate, case.seconds, cameras.tau, cameras.kappa, seeds=range(case.m))
    return tuple(camera_table(stream) for stream in streams)


KINDS = {
    "band": Kind("cam", "band +-{:g}", _cameras, lambda c, hint: camera_sql(c.m, c.window, c.limit, hint)),
    "equality": Kind(
        "keyed",
        "equality, Zipf({:g}) keys",
        lambda c: keyed_tables(c.rate, c.seconds, skew=c.limit, seeds=range(c.m)),
        lambda c, hint: keyed_sql(c.m, c.window, hint),
    ),
    "overlap": Kind(
        "sets",
        "set overlap >= {:g}",
        lambda c: set_tables(c.rate, c.seconds),
        lambda c, hint: set_sql(c.window, int(c.limit), hint),
    ),
    "weighted": Kind(
        "weights",
        "weighted overlap >= {:g}",
        lambda c: weighted_tables(c.rate, c.seconds),
        lambda c, hint: weighted_sql(c.window, c.limit, hint),
    ),
    "cosine": Kind(
        "vectors",
        "cosine >= {:g} on 128 dimensions",
        lambda c: vector_tables(c.rate, c.seconds),
        lambda c, hint: vector_sql(c.window, c.limit, hint),
    ),
    "general": Kind(
        "points",
        "distance <= {:g}, no index",
        lambda c: point_tables(c.rate, c.seconds),
        lambda c, hint: point_sql(c.window, c.limit, hint),
    ),
}

CASES = (
    Case("band3-200", "band", 3, 200, 60, 20, 1, same_sql=True),
    Case("band3-500", "band", 3, 500, 60, 20, 1, same_sql=True),
    Case("band4-100", "band", 4, 100, 60, 20, 1, same_sql=True),
    Case("equality3", "equality", 3, 100, 60, 5, 1, same_sql=True),
    Case("sets", "overlap", 2, 500, 30, 20, 3),
    Case("vectors", "cosine", 2, 100, 60, 20, 0.9),
    Case("general", "general", 2, 500, 60, 20, 2, same_sql=True),
    Case("weighted", "weighted", 2, 100, 60, 20, 1.5),
)
