"""Joins whose windows may hold so many rows: what is joined, how it is run, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.limited import Limited
from sparkshed.experiments.feeds import SECOND
from sparkshed.experiments.result import require
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import (
    Direction,
    EqualityKernel,
    Hop,
    JoinSpec,
    OutputColumn,
    StreamExec,
)
from sparkshed.sql.expr import Col
from sparkshed.sql.predicate import Equality
from sparkshed.workloads.streams import Ints

#: Basic windows of a window, and windows of a micro-batch; results depend on neither.
_BASIC, _BATCH = 4, 4


@dataclass(frozen=True)
class Data:
    """Streams and the joins of them.

    Attributes:
        name: What they are.
        tables: One for each stream; column 0 has the times.
        window: Seconds.
        keys: The columns that are joined on: with several, each in a join of its own, and all share a buffer.
    """

    name: str
    tables: tuple[pa.Table, ...]
    window: float
    keys: tuple[str, ...] = ("k",)

    @property
    def held(self) -> int:
        """Rows that all windows hold on average."""
        times = [table["ts"].cast(pa.int64()).to_numpy() for table in self.tables]
        length = max(int(own[-1]) for own in times) - min(int(own[0]) for own in times)
        return round(sum(map(len, times)) * self.window * SECOND / max(1, length))

    def spec(self) -> JoinSpec:
        """The joins, with the first key of the first stream as their output."""
        first, *others = (self._join(key) for key in self.keys)
        return replace(first, beside=tuple(others))

    def _join(self, key: str) -> JoinSpec:
        m = len(self.tables)
        names = tuple(self.tables[0].column_names)
        types = tuple("timestamp" if name == "ts" else "bigint" for name in names)
        reach = round(self.window * SECOND)
        columns = [Col(i, names.index(key), "bigint", f"s{i + 1}.{key}") for i in range(m)]
        hops = [
            [Hop(k, EqualityKernel((Equality(own, columns[k]),))) for k in range(m) if k != origin]
            for origin, own in enumerate(columns)
        ]
        return JoinSpec(
            streams=tuple(StreamExec(f"s{i + 1}", names, types, names.index("ts")) for i in range(m)),
            bounds=tuple(tuple(0 if i == k else reach for k in range(m)) for i in range(m)),
            directions=tuple(Direction(origin, tuple(own)) for origin, own in enumerate(hops)),
            basic=max(1, reach // _BASIC),
            output=(OutputColumn(0, names.index(self.keys[0]), self.keys[0]),),
        )


@dataclass(frozen=True, slots=True)
class Output:
    """What a run delivered: how many results, and how often each value of the first key is in them."""

    results: int
    values: Ints


def run(data: Data, buffering: Buffering | None = None, seed: int = 0) -> Output:
    """Join all rows in micro-batches; exactly, if there is no limit."""
    spec = data.spec()
    rng = np.random.default_rng(seed)
    strategy = None if buffering is None else Limited(Configuration(spec.orders), buffering, rng)
    operator = JoinOperator(spec, strategy)
    values = np.zeros(1 + max(int(np.max(table[data.keys[0]])) for table in data.tables), np.int64)
    for until, batch in _batches(data.tables, round(data.window * SECOND * _BATCH)):
        for chunk in operator.process(batch):
            values += np.bincount(chunk.column(0).to_numpy(), minlength=len(values))
        operator.expire(until)
    return Output(int(values.sum()), values)


def _batches(tables: Sequence[pa.Table], step: int) -> Iterator[tuple[int, dict[int, pa.Table]]]:
    times = [table["ts"].cast(pa.int64()).to_numpy() for table in tables]
    first, last = min(int(own[0]) for own in times), max(int(own[-1]) for own in times)
    taken = [0] * len(times)
    for until in range(first + step, last + step + 1, step):
        upto = [int(own.searchsorted(until)) for own in times]
        parts = zip(tables, taken, upto, strict=True)
        yield until, {stream: table.slice(a, b - a) for stream, (table, a, b) in enumerate(parts)}
        taken = upto


#: The policies that the paper compares with, and all others.
PAPER = ("prob", "age", "fifo", "rand")
OTHERS = (*PAPER, "lru", "lfu")
POLICIES = ("gdj", *OTHERS)


def limit_of(data: Data, share: float) -> Buffering:
    """Room for a share of what the windows hold, divided among the streams by their rates."""
    return Buffering("gdj", rows=max(len(data.tables), round(share * data.held)), unified=False, reserve=0.0)


def shares(
    data: Data, share: float, policies: Sequence[str], full: Output, seed: int, **changes: Any
) -> dict[str, float]:
    """What each policy delivers with the same memory, of all results."""
    found = {}
    for policy in policies:
        buffering = replace(limit_of(data, share), policy=policy, **changes)
        output = run(data, buffering, seed)
        require(bool((output.values <= full.values).all()), f"{policy} delivers results that do not exist")
        found[policy] = round(output.results / full.results, 4)
    return found


def lead(row: Mapping[str, Any], others: Sequence[str] = OTHERS) -> float:
    """What gdj delivers over the best of the others."""
    return round(row["gdj"] / max(row[name] for name in others if name in row), 4)


def leads(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The smallest lead of gdj, over all others and over those of the paper."""
    return {
        "gdj_lead_min": min(lead(row) for row in rows),
        "gdj_lead_min_of_paper": min(lead(row, PAPER) for row in rows),
        "gdj_lead_max_of_paper": max(lead(row, PAPER) for row in rows),
    }
