"""What tests of limited windows share: plans, stretches of streams, and streaming runs with restarts."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from engine.build import counted
from sparkshed.engine import host as memory
from sparkshed.engine.keeping import Manifest, MemoryStore
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.shedding import Shedding
from sparkshed.planner.streaming import Hosts, StreamingPlan


def shedding_of(spec: JoinSpec, buffering: Buffering, strategy: str | None = None) -> Shedding:
    name = strategy or buffering.policy
    graph = JoinGraph(len(spec.streams), ())
    return Shedding(name, 1.0, Policy(), graph, 7, Configuration(spec.orders), buffering=buffering)


def between(tables: dict[int, pa.Table], start: int, stop: int) -> dict[int, list[pa.Table]]:
    found = {}
    for stream, rows in tables.items():
        first, last = rows.column("ts").cast(pa.int64()).to_numpy().searchsorted([start, stop])
        found[stream] = [rows.slice(first, last - first)]
    return found


def streamed(
    spec: JoinSpec, shedding: Shedding, tables: dict[int, pa.Table], until: int, step: int
) -> Counter:
    """What a streaming query finds whose workers die from time to time; the limit is kept all the while."""
    plan = StreamingPlan(spec, Hosts(1), shedding, False, (False, False), expires=True)
    store, found = MemoryStore(), Counter()
    for number, start in enumerate(range(0, until, step)):
        if number % 3 == 0:
            memory._cache.clear()
        own = StreamingJoin(plan, "limited", 0, store, lambda: 0.0)
        found += counted(own.process(between(tables, start, start + step), None, max(0, start - 1)))
        pieces = Manifest.from_bytes(store.manifest).pieces.values()
        assert sum(piece.rows for piece in pieces) == own.report.rows <= shedding.buffering.limit
    return found
