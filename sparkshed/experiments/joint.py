"""Work and memory limited together: what rows are worth by the slices that are harvested, and by credit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sparkshed.experiments.feeds import SECOND
from sparkshed.experiments.harness import Load
from sparkshed.experiments.joins import keyed_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import exact, grub
from sparkshed.experiments.windowed import means
from sparkshed.planner.buffering import Buffering
from sparkshed.workloads.bursty import market_tables

#: The window and how late the second stream is, both in seconds; rows of both per second.
WINDOW, LATE, RATE = 60.0, 25.0, 20.0
_ADAPT, _TICK = 5.0, 0.25
#: Rows of a stream that can wait for the CPU.
_QUEUE = 100
#: Markets, with the seed and those after it.
REPEATS = 6
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
    markets = [_Market(own.seed, seconds) for own in settings.repeats(REPEATS)]
    rows: list[Row] = []
    for number, (share, memory) in enumerate(limits):
        found = []
        for place, market in enumerate(markets):
            done = number * len(markets) + place
            said = f"CPU for {share:g}, room for {memory:g}, seed {market.seed}"
            settings.progress(done, len(limits) * len(markets), said)
            found.append(market.run(share, memory))
        mean = means(found)
        row: Row = {"cpu": share, "memory": memory, "rows": round(memory * RATE * WINDOW)}
        row |= {name: round(value, 4) for name, value in mean.items()}
        rows.append({**row, "lead": _lead(mean), "least": min(map(_lead, found)), "runs": len(found)})
    leads = [row["lead"] for row in rows]
    require(settings.quick or min(leads) > 1, f"both should be better than either alone: {leads}")
    headline = {"lead_min": min(leads), "lead_mean": round(float(np.mean(leads)), 4)}
    headline["lead_min_in_one_run"] = min(row["least"] for row in rows)
    params = {"window": WINDOW, "late": LATE, "rate": RATE, "seconds": seconds}
    params |= {"seeds": [market.seed for market in markets]}
    return Result("gdj-joint", params, rows, headline)


def _lead(row: Mapping[str, float]) -> float:
    """What both together deliver over the better one of them alone."""
    return round(row["both"] / max(row["credits"], row["harvest"]), 4)


class _Market:
    """One market, and all ways on it."""

    def __init__(self, seed: int, seconds: float) -> None:
        self.seed = seed
        self._join = keyed_join(None, bound=round(WINDOW * SECOND), indexed=False, basic=WINDOW / 10)
        self._tables = late_market(seconds, seed)
        self._load = Load(adapt=_ADAPT, seconds=seconds, warm_up=seconds / 4, tick=_TICK, buffer=_QUEUE)
        self._full = exact(self._join, self._tables, self._load)

    def run(self, share: float, memory: float) -> dict[str, float]:
        """What each way delivers, and the work that it does."""
        limit = round(memory * RATE * WINDOW)
        limited = replace(self._load, capacity=share * self._full.work_rate)
        row = {}
        for name, (policy, harvest) in WAYS.items():
            buffering = Buffering(policy, rows=limit, harvest=harvest)
            run = grub(self._join, self._tables, limited, seed=self.seed, buffering=buffering).outcome
            held = max(step.held for step in run.steps)
            require(held <= limit, f"{name} holds {held} rows of {limit}")
            row[name] = run.results / self._full.results
            row[f"work_{name}"] = run.work / self._full.work
        return row
