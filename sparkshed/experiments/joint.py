"""Work and memory limited together: what rows are worth by the slices that are harvested, and by credit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from sparkshed.experiments.feeds import SECOND
from sparkshed.experiments.harness import Load
from sparkshed.experiments.joins import keyed_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import exact, grub
from sparkshed.planner.buffering import Buffering
from sparkshed.workloads.bursty import market_tables

#: The window and how late the second stream is, both in seconds; rows of both per second.
WINDOW, LATE, RATE = 60.0, 25.0, 20.0
_ADAPT, _TICK = 5.0, 0.25
#: Rows of a stream that can wait for the CPU.
_QUEUE = 100
#: Who leaves: by both, by credit alone, by age alone (what is harvested, of rows on average), and others.
WAYS = {
    "both": ("gdj", True),
    "credits": ("gdj", False),
    "harvest": ("age", True),
    "prob": ("prob", True),
    "lru": ("lru", True),
    "fifo": ("fifo", True),
}


def late_market(seconds: float, seed: int) -> list[pa.Table]:
    """One market in two places, of which the second is late: rows of the first have to wait for theirs."""
    first, second = market_tables(2, seconds, seed, RATE)
    times = second["ts"].cast(pa.int64()).to_numpy() + round(LATE * SECOND)
    late = pa.array(times).cast(second.schema.field("ts").type)
    return [first, second.set_column(second.column_names.index("ts"), "ts", late)]


def joint(settings: Settings) -> Result:
    """A CPU for a share of the work and room for a share of the rows; rows leave in several ways."""
    seconds = 100.0 if settings.quick else 480.0
    limits = (
        ((0.1, 0.3),) if settings.quick else ((0.1, 0.15), (0.2, 0.3), (0.3, 0.3), (0.2, 0.5), (0.4, 0.5))
    )
    join = keyed_join(None, bound=round(WINDOW * SECOND), indexed=False, basic=WINDOW / 10)
    tables = late_market(seconds, settings.seed)
    load = Load(adapt=_ADAPT, seconds=seconds, warm_up=seconds / 4, tick=_TICK, buffer=_QUEUE)
    full = exact(join, tables, load)
    rows: list[Row] = []
    for number, (share, memory) in enumerate(limits):
        limit = round(memory * RATE * WINDOW)
        limited = replace(load, capacity=share * full.work_rate)
        row: Row = {"cpu": share, "memory": memory, "rows": limit}
        for place, (name, (policy, harvest)) in enumerate(WAYS.items()):
            said = f"CPU for {share:g}, {limit} rows, {name}"
            settings.progress(number * len(WAYS) + place, len(limits) * len(WAYS), said)
            buffering = Buffering(policy, rows=limit, harvest=harvest)
            run = grub(join, tables, limited, seed=settings.seed, buffering=buffering).outcome
            held = max(step.held for step in run.steps)
            require(held <= limit, f"{name} holds {held} rows of {limit}")
            row[name] = round(run.results / full.results, 4)
            row[f"work_{name}"] = round(run.work / full.work, 4)
        rows.append(row)
    leads = [row["both"] / max(row["credits"], row["harvest"]) for row in rows]
    require(settings.quick or float(np.mean(leads)) > 1, f"both should be better than either alone: {leads}")
    headline = {"lead_min": round(min(leads), 4), "lead_mean": round(float(np.mean(leads)), 4)}
    params = {"window": WINDOW, "late": LATE, "rate": RATE, "seconds": seconds, "seed": settings.seed}
    return Result("gdj-joint", params, rows, headline)
