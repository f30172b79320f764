"""Micro-batches under bursts: the real host and the real control loop on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.keeping import MemoryStore
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.experiments.feeds import SECOND
from sparkshed.experiments.joins import Join, camera_join
from sparkshed.experiments.output import phase_tables
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.loop import ControlLoop, Timing
from sparkshed.planner.shedding import Shedding
from sparkshed.planner.streaming import Hosts, StreamingPlan
from sparkshed.workloads.cameras import Phase, nonaligned

#: Seconds that any micro-batch takes, and work units that the CPU does in a second.
FIXED, CAPACITY = 0.3, 2.5e6
#: Seconds between triggers.
TRIGGER = 1.0
#: Rate of a quiet time, at which the exact join is easy.
RATE = 50.0


def plan_of(join: Join, *, follows: bool = True, budget: float = 1.0, seed: int = 1) -> StreamingPlan:
    """A streaming join on one host."""
    shedding = Shedding(
        strategy="grubjoin",
        budget=budget,
        policy=Policy(follows=follows),
        graph=join.graph,
        seed=seed,
        configuration=Configuration(join.spec.orders, shred=0.1),
    )
    return StreamingPlan(join.spec, Hosts(1), shedding, follows, (False,) * len(join.spec.streams))


def micro_batches(plan: StreamingPlan, tables: Sequence[pa.Table], name: str) -> Iterator[Row]:
    """Take all rows that arrived, join them, let the clock run on; one row of figures for each batch."""
    times = [table.column("ts").cast(pa.int64()).to_numpy() / SECOND for table in tables]
    start, end = min(own[0] for own in times), max(own[-1] for own in times)
    loop = ControlLoop(plan, interval=TRIGGER)
    store, taken = MemoryStore(), [0] * len(tables)
    now, last, decision = start + TRIGGER, start, None
    while now < end:
        upto = [int(own.searchsorted(now)) for own in times]
        batch = {
            stream: [table.slice(taken[stream], upto[stream] - taken[stream])]
            for stream, table in enumerate(tables)
        }
        host = StreamingJoin(plan, name, 0, store, lambda: 0.0)
        watermark = int((last - TRIGGER) * SECOND)
        results = sum(chunk.num_rows for chunk in host.process(batch, decision, watermark))
        assert host.report is not None
        joining = sum(host.report.work) / CAPACITY
        duration = FIXED + joining
        lasted, rows = now - last, sum(upto) - sum(taken)
        report = replace(host.report, joining=joining)
        decided = loop.observe([report], Timing(now + duration, duration, lasted))
        decision = None if decided is None else decided.to_json()
        yield {
            "at": round(now - start, 2),
            "rate": round(rows / lasted / len(tables), 1),
            "z": round(host.report.throttle, 4),
            "seconds": round(duration, 3),
            "results": results,
            "completeness": round(host.report.completeness.share, 4),
        }
        last, taken = now, upto
        now = max(now + duration, now + TRIGGER if duration <= TRIGGER else now + duration)


def _followed(rows: Sequence[Row], end: float, *, up: bool) -> float:
    """When five batches kept within the time between triggers, and, after a burst, used half of it.

    Batches need not use it where they deliver nine tenths of the results anyway.
    """
    for place, row in enumerate(rows):
        five = rows[place : place + 5]
        seconds, share = (np.median([r[name] for r in five]) for name in ("seconds", "completeness"))
        if seconds <= TRIGGER and (up or seconds >= TRIGGER / 2 or share >= 0.9):
            return float(row["at"])
    return end


def burst(settings: Settings) -> Result:
    """Rates ×1, ×5, ×1, ×10, ×1: how fast z follows.

    z has followed a burst when batches take no longer than the time between triggers, and the end of one when
    they use that time again, or need not. (z itself cannot be 1 before the windows, 20 s long, have lost the
    rows of the burst.) Counted are adaptation intervals until then, until something is shed, and until nine
    tenths of the results are delivered again. While windows fill, and when rows first meet partners with
    their lag, the load grows on, so single batches are longer.
    """
    factors = [1.0, 5.0, 1.0] if settings.quick else [1.0, 5.0, 1.0, 10.0, 1.0]
    each, adapt = 40.0, Policy().adapt
    phases = [Phase(each, RATE * factor, nonaligned(3)) for factor in factors]
    rows: list[Row] = []
    plan = plan_of(camera_join(3), seed=settings.seed)
    for row in micro_batches(plan, phase_tables(phases, settings.seed), f"burst-{settings.seed}"):
        settings.progress(round(row["at"]), round(each * len(factors)), f"z = {row['z']:g}")
        rows.append(row)
    headline: dict[str, Any] = {}
    for number, factor in enumerate(factors[1:], 1):
        began = each * number
        own = [r for r in rows if began + 1 < r["at"] <= began + each]
        followed = _followed(own, began + each, up=factor > 1)
        headline[f"steps_to_follow_{number}"] = round((followed - began) / adapt, 2)
        if factor > 1:
            # Windows fill with the new rate for as long as they are, so it is the settled batches that count.
            settled = np.median([r["seconds"] for r in own[len(own) // 2 :]])
            late = next(r["at"] for r in own if r["z"] < 1) - began
            headline[f"steps_to_shed_x{factor:g}"] = round(float(late) / adapt, 2)
            headline[f"settled_seconds_x{factor:g}"] = round(float(settled), 3)
            headline[f"longest_seconds_x{factor:g}"] = max(r["seconds"] for r in own)
        else:
            back = next((r["at"] for r in own if r["completeness"] >= 0.9), began + each)
            headline[f"steps_to_recover_{number}"] = round((float(back) - began) / adapt, 2)
        headline[f"completeness_{number}"] = round(float(np.mean([r["completeness"] for r in own])), 3)
    slowest = max(value for name, value in headline.items() if name.startswith("steps_to_follow"))
    require(slowest <= 2, f"z should follow within two adaptation intervals, and took {slowest:g}")
    require(rows[-1]["z"] > 0.9, "z should open again after the last burst")
    params = {"rate": RATE, "factors": factors, "seconds": each, "adapt": adapt, "fixed": FIXED}
    return Result("streaming-burst", {**params, "capacity": CAPACITY, "seed": settings.seed}, rows, headline)
