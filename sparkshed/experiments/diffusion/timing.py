"""How long routing takes: a decision for a segment, and its share of each row."""

from __future__ import annotations

import gc
from time import process_time

import numpy as np

from sparkshed.experiments.diffusion.aligned import flow_of, ticks_of
from sparkshed.experiments.diffusion.cluster import Query
from sparkshed.experiments.diffusion.coordinated import orders_of
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.planner.diffusion.aligned import AlignedRouter
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter

#: Wanted: milliseconds of a decision with 100 hosts, and microseconds of a row.
_DECISION, _ROW = 1.0, 50.0
#: Rows of a stream in a second, and seconds of a segment.
_RATE, _TICK = 20.0, 1.0


def fig9(settings: Settings) -> Result:
    """Three streams with windows of 60 s, as in fig. 7."""
    return _timed(settings, "diffusion-fig9", 60.0)


def fig10(settings: Settings) -> Result:
    """Three streams with windows of 120 s, as in fig. 8."""
    return _timed(settings, "diffusion-fig10", 120.0)


def _timed(settings: Settings, name: str, window: float) -> Result:
    """CPU time of decisions, and of looking up the decision for each row.

    Loads are random and new every five seconds, which makes covers larger than those of a steady cluster.
    """
    counts = (6, 100) if settings.quick else (6, 30, 100, 250)
    rows: list[Row] = []
    for number, count in enumerate(counts):
        settings.progress(number, len(counts), f"{count} hosts")
        query = Query(3, round(window / _TICK), 0.1, (_RATE,) * 3, _TICK)
        for way in ("atr", "ctr"):
            times, size = (_aligned if way == "atr" else _coordinated)(query, count, settings)
            mean, late = float(np.mean(times)), float(np.percentile(times, 99))
            row: Row = {
                "way": way,
                "hosts": count,
                "ms": round(mean, 4),
                "ms_99": round(late, 4),
                "table": size,
            }
            # A row of the slowest stream of the paper, of which there are five in such a segment.
            row["us_per_row"] = round(1000 * mean / (_RATE * _TICK) + _lookup(), 3)
            row["us_per_row_slowest"] = round(1000 * mean / 5 + _lookup(), 3)
            rows.append(row)
    for row in rows:
        if row["hosts"] <= 100:
            require(row["ms"] <= _DECISION, f"a decision should take {_DECISION} ms at most: {row}")
            require(row["us_per_row"] <= _ROW, f"a row should take {_ROW} µs at most: {row}")
    headline = {
        f"{row['way']}_{key}_{row['hosts']}": row[key]
        for row in rows
        for key in ("ms", "ms_99", "us_per_row")
    }
    params = {"streams": 3, "window": window, "rate": _RATE, "tick": _TICK, "seed": settings.seed}
    return Result(name, params, rows, headline)


def _aligned(query: Query, hosts: int, settings: Settings) -> tuple[list[float], int]:
    router, rng = AlignedRouter(ticks_of(query), hosts, 0, 2), np.random.default_rng(settings.seed)
    times, size = [], 0
    gc.disable()
    try:
        for tick in range(_ticks(query, settings)):
            if tick % 5 == 0:
                router.measure([float(load) for load in rng.random(hosts)], query.window + 5)
            for stream in range(query.streams):
                begin = process_time()
                router.route(stream, tick)
                times.append(1000 * (process_time() - begin))
            router.forget(tick)
            size = max(size, router.size)
    finally:
        gc.enable()
    return times[2 * query.window * query.streams :], size


def _coordinated(query: Query, hosts: int, settings: Settings) -> tuple[list[float], int]:
    router = CoordinatedRouter(ticks_of(query), hosts, orders_of(query))
    router.flow = flow_of(query, query.rates, query.window * query.tick)
    rng, times, size = np.random.default_rng(settings.seed), [], 0
    gc.disable()
    try:
        for tick in range(_ticks(query, settings)):
            if tick % 5 == 0:
                router.measure([float(load) for load in rng.random(hosts)], 15 * query.window)
            for stream in range(query.streams):
                begin = process_time()
                router.route([(stream, tick)])
                times.append(1000 * (process_time() - begin))
            router.forget(tick)
            size = max(size, router.size)
    finally:
        gc.enable()
    return times[2 * query.window * query.streams :], size


def _ticks(query: Query, settings: Settings) -> int:
    return 2 * query.window + (100 if settings.quick else 400)


def _lookup() -> float:
    """Microseconds of finding the decision that was made for a segment."""
    decisions = {(stream, tick): (1, 2, 3) for stream in range(3) for tick in range(1000)}
    begin = process_time()
    for turn in range(30_000):
        decisions[turn % 3, turn % 1000]
    return (process_time() - begin) / 30_000 * 1e6
