"""How GrubJoin follows change: rates that rise and fall, a throttle that is wide open, a lag that jumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparkshed.experiments.harness import Load
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import CAPACITY, phase_tables, tables_of
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import PAPER, Compared, compare, grub
from sparkshed.planner.adaptation import Policy
from sparkshed.workloads.cameras import Cameras, Phase, nonaligned

#: The share of the steady output that counts as learned again.
_BACK = 0.9


def fig2(settings: Settings) -> Result:
    """The throttle while rates change; Δ = 4 s, γ = 1.2.

    Both throttles are shown: the paper's, which only sees whether the join kept up, and ours, which
    also sees how busy the CPU was.
    """
    rates = [80.0, 150.0, 80.0] if settings.quick else [100.0, 150.0, 200.0, 100.0, 250.0, 80.0, 150.0]
    each = 12.0 if settings.quick else 24.0
    phases = [Phase(each, rate, nonaligned(3)) for rate in rates]
    tables = phase_tables(phases, settings.seed)
    load = Load(CAPACITY, adapt=4.0, seconds=each * len(rates), warm_up=20.0)
    rows: list[Row] = []
    runs = {"paper": replace(load, measured=False), "measured": load}
    for number, (name, own) in enumerate(runs.items()):
        settings.progress(number, len(runs), name)
        for step in grub(camera_join(3), tables, own).outcome.steps:
            rate = rates[min(len(rates) - 1, int((step.at - 2) // each))]
            rows.append(
                {
                    "throttle": name,
                    "at": round(step.at, 1),
                    "rate": rate,
                    "z": round(step.throttle, 4),
                    "beta": round(step.beta, 3),
                    "busy": round(step.busy, 3),
                    "lost": step.lost,
                }
            )
    headline: dict[str, float] = {}
    for name in runs:
        own_rows = [row for row in rows if row["throttle"] == name and row["at"] > 20]
        low = [row["z"] for row in own_rows if row["rate"] == min(rates)]
        high = [row["z"] for row in own_rows if row["rate"] == max(rates)]
        require(np.mean(high) < np.mean(low), f"{name}: z should be smaller for higher rates")
        logs = np.log([[row["rate"], row["z"]] for row in own_rows])
        headline[f"correlation_{name}"] = round(float(np.corrcoef(logs.T)[0, 1]), 3)
        headline[f"lost_{name}"] = round(sum(row["lost"] for row in own_rows) / _arrived(rates, each), 4)
    return Result(
        "grubjoin-fig2", {"rates": rates, "seconds": each, "adapt": 4, "boost": 1.2}, rows, headline
    )


def _arrived(rates: Sequence[float], each: float) -> float:
    return 3 * each * sum(rates)


def fig16(settings: Settings) -> Result:
    """Rows lost in the 20 s after the throttle was opened to z = 1, by the size of the buffers.

    The throttle is the paper's. Buffers are given in seconds of input; 0 is the paper's 10 rows.
    """
    sizes = [0.0, 1.0] if settings.quick else [0.0, 0.5, 1.0, 2.0]
    rates = [200.0] if settings.quick else [125.0, 150.0, 200.0, 250.0]
    opened, watched = 40.0, 20.0
    rows: list[Row] = []
    cases = [(rate, size) for rate in rates for size in sizes]
    for number, (rate, size) in enumerate(cases):
        settings.progress(number, len(cases), f"{rate:g} rows/s, buffers of {size:g} s")
        load = Load(
            CAPACITY,
            buffer=max(10, round(size * rate)),
            seconds=opened + watched,
            warm_up=opened,
            measured=False,
            reset=opened - 0.01,
        )
        run = grub(camera_join(3), tables_of(nonaligned(3), rate, load.seconds, settings.seed), load).outcome
        rows.append({"rate": rate, "buffer": size, "rows": load.buffer, "lost": round(run.loss, 4)})
    by = {(row["rate"], row["buffer"]): row["lost"] for row in rows}
    for rate in rates:
        require(by[rate, sizes[-1]] <= by[rate, 0.0] + 0.01, "larger buffers should not lose more rows")
    headline = {f"cut_{s:g}s_200": round(1 - by[200.0, s] / max(1e-9, by[200.0, 0.0]), 4) for s in sizes[1:]}
    return Result("grubjoin-fig16", {"capacity": CAPACITY, "adapt": 5, "seed": settings.seed}, rows, headline)


def lag_change(settings: Settings) -> Result:
    """The lag of the second stream jumps by half a window in mid-run: how fast is it learned?

    It jumps from 15 s to 5 s, so that there are results all the time: rows of the old lag stay in the
    windows and match for 15 s more, rows of the new one match from 5 s on. So the first decision that can
    know of it comes 10 s after the jump; steps are counted from there, and from the jump as well. What counts
    is the gain over RandomDrop with the same work, interval by interval, as a share of its mean from 35 s
    after the jump on. RandomDrop finds little in one interval, so that gains are means over several seeds.
    """
    before, after = (40.0, 55.0) if settings.quick else (60.0, 80.0)
    new, old, rate = 5.0, 15.0, 150.0 if settings.quick else 200.0
    cameras, moved = (Cameras((0.0, lag, 15.0), (2.0, 2.0, 50.0)) for lag in (old, new))
    load = Load(CAPACITY, seconds=before + after, warm_up=20.0)
    policies = {"lagrange, pairwise": Policy()}
    if not settings.quick:
        policies["greedy, per stream"] = PAPER
    seeds = [own.seed for own in settings.repeats(3)]
    rows: list[Row] = []
    headline: dict[str, float] = {}
    for number, (name, policy) in enumerate(policies.items()):
        found = []
        for turn, seed in enumerate(seeds):
            settings.progress(number * len(seeds) + turn, len(policies) * len(seeds), f"{name}, seed {seed}")
            tables = phase_tables([Phase(before, rate, cameras), Phase(after, rate, moved)], seed)
            found.append(compare(camera_join(3), tables, load, policy))
        own = _by_interval(name, found, load)
        steady = float(np.mean([row["gain"] for row in own if row["at"] > before + 36]))
        require(steady > 0, f"{name}: no gain after the lag changed")
        since = [row["gain"] / steady for row in own if row["at"] > before + new + load.adapt + 1]
        needed = next((k + 1 for k, gain in enumerate(since) if gain >= _BACK), len(since) + 1)
        key = "" if name == "lagrange, pairwise" else "_paper"
        headline[f"steps_to_90_percent{key}"] = needed
        headline[f"steps_from_jump_to_90_percent{key}"] = needed + round((new + load.adapt) / load.adapt)
        headline[f"gain_after_3_steps{key}"] = round(since[2], 4)
        headline[f"steady_gain{key}"] = round(steady, 4)
        rows += own
    params = {
        "rate": rate,
        "lags": [old, new],
        "window": 20,
        "at": before,
        "capacity": CAPACITY,
        "seeds": seeds,
    }
    return Result("grubjoin-lag-change", params, rows, headline)


def _by_interval(name: str, found: Sequence[Compared], load: Load) -> list[Row]:
    """Gain and share of the exact join's results of each interval, over all runs."""
    rows = []
    count = min(len(run.steps) for own in found for run in (own.grub, own.dropped, own.full))
    for k in range(count):
        results, dropped, full = (
            sum(getattr(own, kind).steps[k].results for own in found) for kind in ("grub", "dropped", "full")
        )
        at = found[0].grub.steps[k].at
        if at > load.warm_up:
            gain, share = results / max(1, dropped) - 1, results / max(1, full)
            rows.append(
                {"policy": name, "at": round(at, 1), "gain": round(gain, 4), "share": round(share, 4)}
            )
    return rows
