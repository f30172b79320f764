"""What tests of limited windows share: plans, stretches of streams, and streaming runs with restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from engine.build import counted
from sparkshed.engine import host as memory
from sparkshed.engine.keeping import Manifest, MemoryStore
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.engine.wire import from_blob
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.buffering import ROW_OVERHEAD, Buffering
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
    static = (False,) * len(spec.streams)
    plan = StreamingPlan(spec, Hosts(1), shedding, False, static, expires=True)
    store, found = MemoryStore(), Counter()
    for number, start in enumerate(range(0, until, step)):
        if number % 3 == 0:
            memory._cache.clear()
        own = StreamingJoin(plan, "limited", 0, store, lambda: 0.0)
        found += counted(own.process(between(tables, start, start + step), None, max(0, start - 1)))
        pieces = Manifest.from_bytes(store.manifest).pieces.values()
        assert sum(piece.rows for piece in pieces) == own.report.rows
        held = [from_blob(store.pieces[key]) for key in Manifest.from_bytes(store.manifest).pieces]
        assert taken(held, shedding.buffering) <= shedding.buffering.limit
    return found


def taken(pieces: Iterable[pa.Table], buffering: Buffering) -> int:
    """What rows take that were written down, in rows or bytes; `ROW_OVERHEAD` has room for their weights."""
    if buffering.bytes is None:
        return sum(piece.num_rows for piece in pieces)
    rows = [piece.drop_columns([c for c in ("weight",) if c in piece.column_names]) for piece in pieces]
    return sum(piece.nbytes + ROW_OVERHEAD * piece.num_rows for piece in rows)
