"""Rows that no harvest reaches: what dropping them saves, and what it costs when a lag jumps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.experiments.harness import Load
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import CAPACITY, phase_tables
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import grub
from sparkshed.planner.adaptation import Policy
from sparkshed.workloads.cameras import Cameras, Phase


def memory(settings: Settings) -> Result:
    """Rows in the windows with and without the old ones that no harvest reaches.

    First all partners are near in time, so that much can be dropped; then the lag of two streams jumps into
    the part that was. For as long as the new lag there are hardly any results; then the windows must fill up
    again where they were thinned out.
    """
    # Quick runs have a third of the window, of the lags and of the time.
    scale = 1 / 3 if settings.quick else 1.0
    each, rate = 60.0 * scale, 150.0
    near, far = (
        Cameras((0.0, 0.0, 5 * scale), (2.0, 2.0, 20.0)),
        Cameras((0.0, 15 * scale, 15 * scale), (2.0, 2.0, 20.0)),
    )
    load = Load(CAPACITY * scale, seconds=2 * each, warm_up=each / 3, adapt=5 * scale)
    join = camera_join(3, window=20 * scale, basic=2 * scale)
    seeds = [own.seed for own in settings.repeats(3)]
    rows: list[Row] = []
    for turn, seed in enumerate(seeds):
        tables = phase_tables([Phase(each, rate, near), Phase(each, rate, far)], seed)
        for saving in (False, True):
            settings.progress(2 * turn + saving, 2 * len(seeds), f"seed {seed}, saving: {saving}")
            steps = grub(join, tables, load, Policy(save_memory=saving), seed=seed + 1).outcome.steps
            rows += [
                {
                    "saving": saving,
                    "seed": seed,
                    "at": round(step.at, 1),
                    "rows": step.held,
                    "results": step.results,
                    "z": round(step.throttle, 4),
                }
                for step in steps
                if step.at > load.warm_up
            ]
    headline: dict[str, float] = {}
    for name, low, high in (("before", 0.0, each), ("after", each, 2 * each)):
        plain, thin = (
            [r for r in rows if r["saving"] == s and low < r["at"] <= high + 1] for s in (False, True)
        )
        headline[f"rows_{name}_jump"] = _ratio(thin, plain, "rows")
        headline[f"output_{name}_jump"] = _ratio(thin, plain, "results")
    require(headline["rows_before_jump"] < 1, "nothing was dropped")
    params = {"rate": rate, "window": 20 * scale, "at": each, "capacity": load.capacity, "seeds": seeds}
    return Result("grubjoin-memory", params, rows, headline)


def _ratio(thin: Sequence[Row], plain: Sequence[Row], name: str) -> float:
    return round(float(np.sum([r[name] for r in thin]) / max(1, np.sum([r[name] for r in plain]))), 4)
