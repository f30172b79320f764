"""Joins whose windows may hold so many rows: what is joined, how it is run, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.limited import Limited
from sparkshed.experiments.feeds import SECOND
from sparkshed.experiments.result import Row, require
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
        seed: Of random choices of policies.
    """

    name: str
    tables: tuple[pa.Table, ...]
    window: float
    keys: tuple[str, ...] = ("k",)
    seed: int = 0

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


#: The policies that gdj should be ahead of everywhere, and all others.
FIVE = ("prob", "age", "fifo", "rand", "lru")
OTHERS = (*FIVE, "lfu")
POLICIES = ("gdj", *OTHERS)


def limit_of(data: Data, share: float) -> Buffering:
    """Room for a share of what the windows hold, divided among the streams by their rates."""
    return Buffering("gdj", rows=max(len(data.tables), round(share * data.held)), unified=False, reserve=0.0)


class Trials:
    """Streams of one kind, on all of which policies are compared.

    What counts are means: one burst may be most of the results of a stream, and who has just the rows that
    it needs is a matter of luck.
    """

    def __init__(self, runs: Sequence[Data]) -> None:
        """Take the streams."""
        self.runs = tuple(runs)

    @property
    def name(self) -> str:
        """What they are."""
        return self.runs[0].name

    @cached_property
    def fulls(self) -> list[Output]:
        """What the exact join of each has."""
        return [run(data) for data in self.runs]

    def each(
        self, share: float, policies: Sequence[str] = POLICIES, **changes: Any
    ) -> list[dict[str, float]]:
        """What each policy delivers with the same memory, of all results, stream by stream."""
        found = []
        for data, full in zip(self.runs, self.fulls, strict=True):
            limit = replace(limit_of(data, share), **changes)
            own = {}
            for policy in policies:
                output = run(data, replace(limit, policy=policy), data.seed)
                require(bool((output.values <= full.values).all()), f"{policy}: results that do not exist")
                own[policy] = output.results / full.results
            found.append(own)
        return found

    def shares(self, share: float, policies: Sequence[str], **changes: Any) -> dict[str, float]:
        """The same, on average."""
        return _rounded(means(self.each(share, policies, **changes)))


def compared(each: Sequence[Mapping[str, float]]) -> Row:
    """What policies deliver on average, and how far gdj is ahead: on average, and in the worst run."""
    mean = means(each)
    leads = {
        "lead": lead(mean),
        "lead_of_five": lead(mean, FIVE),
        "least": min(lead(own, FIVE) for own in each),
    }
    return {**_rounded(mean), "full": 1.0, **leads, "runs": len(each)}


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The means of all columns."""
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _rounded(row: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in row.items()}


def lead(row: Mapping[str, Any], others: Sequence[str] = OTHERS) -> float:
    """What gdj delivers over the best of the others; without rounding up to 1."""
    return floor(1e4 * row["gdj"] / max(row[name] for name in others if name in row)) / 1e4


def leads(rows: Sequence[Row]) -> dict[str, float]:
    """The leads of gdj, over all others and over the five that it should be ahead of everywhere."""
    five = [row["lead_of_five"] for row in rows]
    return {
        "gdj_lead_min": min(row["lead"] for row in rows),
        "gdj_lead_min_of_five": min(five),
        "gdj_lead_max_of_five": max(five),
        "gdj_lead_min_of_five_in_one_run": min(row["least"] for row in rows),
    }
