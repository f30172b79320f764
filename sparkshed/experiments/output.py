"""Output rates under load: GrubJoin beside RandomDrop with the same work on the same streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.experiments.harness import Forced, Load, Step
from sparkshed.experiments.joins import Join, camera_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import CLOSE, PAPER, Compared, compare, grub
from sparkshed.planner.adaptation import Policy
from sparkshed.workloads.cameras import (
    Cameras,
    Phase,
    aligned,
    camera_phases,
    camera_streams,
    camera_table,
    nonaligned,
)

#: Work units per second. The exact nonaligned join of three streams needs 2.56 million at 100 rows per
#: second, so shedding starts there, as in the paper.
CAPACITY = 2.6e6
#: The paper's numbers are from runs of 60 s, of which 20 s are warm-up.
SECONDS, WARM_UP = 60.0, 20.0
#: Seeds of a full run, from the one that is given on.
SEEDS = 3
OURS = Policy()
POLICIES = {"lagrange, pairwise": OURS, "greedy, per stream": PAPER}


def tables_of(cameras: Cameras, rate: float, seconds: float, seed: int) -> list[pa.Table]:
    """Streams of equal rates."""
    seeds = range(100 * seed, 100 * seed + len(cameras.tau))
    return [camera_table(s) for s in camera_streams(rate, seconds, cameras.tau, cameras.kappa, seeds=seeds)]


def phase_tables(phases: Sequence[Phase], seed: int) -> list[pa.Table]:
    """Streams that change."""
    count = len(phases[0].cameras.tau)
    streams = camera_phases(phases, seeds=range(100 * seed, 100 * seed + count))
    return [camera_table(stream) for stream in streams]


def _load(settings: Settings, **changes: Any) -> Load:
    load = Load(CAPACITY, seconds=SECONDS, warm_up=WARM_UP)
    if settings.quick:
        load = replace(load, seconds=40.0)
    return replace(load, **changes)


def _params(load: Load, settings: Settings, **more: Any) -> dict[str, Any]:
    return {
        "capacity": load.capacity,
        "buffer": load.buffer,
        "adapt": load.adapt,
        "seconds": load.seconds,
        "warm_up": load.warm_up,
        "seed": settings.seed,
        **more,
    }


def checked(compared: Compared, load: Load, what: str) -> Row:
    """The row of a comparison; refuses one that is not fair."""
    full, own = compared.full, compared.grub
    require(own.results <= full.results * 1.02, f"{what}: more results than the exact join has")
    require(own.work_rate <= 1.02 * load.capacity, f"{what}: more work than the CPU can do")
    spare = compared.dropped.work_rate >= (1 - CLOSE) * own.work_rate
    nothing_to_drop = compared.dropped.results == full.results
    require(spare or nothing_to_drop, f"{what}: RandomDrop did less work than GrubJoin")
    return compared.row(load)


def _seeds(settings: Settings) -> list[int]:
    return [own.seed for own in settings.repeats(SEEDS)]


def _mean(rows: Sequence[Row]) -> Row:
    """One row for all seeds: means, and the smallest gain."""
    mean = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}
    return mean | {"least_gain": min(row["gain"] for row in rows), "seeds": len(rows)}


def _compared(
    join: Join, cameras: Cameras, rate: float, load: Load, policy: Policy, seeds: Sequence[int], what: str
) -> Row:
    """GrubJoin beside RandomDrop, over some seeds."""
    rows = []
    for seed in seeds:
        tables = tables_of(cameras, rate, load.seconds, seed)
        rows.append(checked(compare(join, tables, load, policy), load, f"{what}, seed {seed}"))
    return _mean(rows)


def fig11(settings: Settings) -> Result:
    """Rates from below the capacity to far beyond it, aligned and not.

    From the capacity to the paper's 200 rows per second there are several seeds; these rates make the
    headline.
    """
    rates = [150.0] if settings.quick else [50.0, 75.0, 100.0, 150.0, 200.0, 300.0]
    load, seeds = _load(settings), _seeds(settings)
    rows: list[Row] = []
    cases = [(kind, rate, name) for kind in ("aligned", "nonaligned") for rate in rates for name in POLICIES]
    cases = [
        case for case in cases if case[2] == "lagrange, pairwise" or case[1] == 200 and not settings.quick
    ]
    for number, (kind, rate, name) in enumerate(cases):
        settings.progress(number, len(cases), f"{kind}, {rate:g} rows/s, {name}")
        cameras = aligned(3) if kind == "aligned" else nonaligned(3)
        what = f"{kind}, {rate:g} rows/s, {name}"
        several = 100 <= rate <= 200 and name == "lagrange, pairwise"
        own = seeds if several else seeds[:1]
        row = _compared(camera_join(3), cameras, rate, load, POLICIES[name], own, what)
        rows.append({"streams": kind, "rate": rate, "policy": name, **row})

    def best(kind: str, name: str) -> float:
        own = [row for row in rows if row["streams"] == kind and row["policy"] == name]
        return float(max((row["gain"] for row in own if 100 < row["rate"] <= 200), default=0.0))

    headline = {"gain_aligned_max": best("aligned", "lagrange, pairwise")}
    headline["gain_nonaligned_max"] = best("nonaligned", "lagrange, pairwise")
    if not settings.quick:
        headline["gain_aligned_max_paper"] = best("aligned", "greedy, per stream")
        headline["gain_nonaligned_max_paper"] = best("nonaligned", "greedy, per stream")
    require(min(headline["gain_aligned_max"], headline["gain_nonaligned_max"]) > 0, "no gain at all")
    params = _params(load, settings, m=3, rates=rates, seeds=seeds)
    return Result("grubjoin-fig11", params, rows, headline)


def fig12(settings: Settings) -> Result:
    """How much the gain owes to time correlations: κ₃, and streams without any.

    Where the paper has numbers, several seeds are run, and the paper's configuration beside ours.
    """
    kappas = [25.0, 50.0, 75.0] if settings.quick else [5.0, 25.0, 50.0, 75.0, 100.0, 200.0]
    rate = 125.0 if settings.quick else 200.0
    load, seeds = _load(settings), _seeds(settings)
    rows: list[Row] = []
    cases: list[tuple[str, Cameras]] = [(f"{k:g}", Cameras((0, 5, 15), (2, 2, k))) for k in kappas]
    if not settings.quick:
        cases.append(("none", Cameras((0, 5, 15), (2000, 2000, 2000))))
    for number, (label, cameras) in enumerate(cases):
        known = not settings.quick and label in ("25", "50", "75")
        for name, policy in (POLICIES if known else {"lagrange, pairwise": OURS}).items():
            settings.progress(number, len(cases), f"kappa = {label}, {name}")
            what = f"kappa {label}, {name}"
            own = seeds if policy is OURS and (known or label == "none") else seeds[:1]
            row = _compared(camera_join(3), cameras, rate, load, policy, own, what)
            rows.append({"kappa_3": label, "policy": name, **row})
    gains = {(row["kappa_3"], row["policy"]): row["gain"] for row in rows}
    headline = {f"gain_kappa_{k}": gains[str(k), "lagrange, pairwise"] for k in (25, 50, 75)}
    if not settings.quick:
        headline |= {f"gain_kappa_{k}_paper": gains[str(k), "greedy, per stream"] for k in (25, 50, 75)}
        headline["gain_uncorrelated"] = gains["none", "lagrange, pairwise"]
        require(headline["gain_uncorrelated"] > -0.05, "worse than RandomDrop without time correlations")
    params = _params(load, settings, m=3, rate=rate, seeds=seeds)
    return Result("grubjoin-fig12", params, rows, headline)


def fig13(settings: Settings) -> Result:
    """Three, four and five streams at 100 rows per second each.

    One row of the five-way join can take longer than ten rows take to arrive, so buffers hold a second of
    input here. With more streams it takes longer until the windows are full of rows that were not lost, so
    runs are longer, too. A slice that is not needed costs more, so ours are shorter than the paper's. With
    three streams, shedding only just starts at this rate, so there is little to gain.
    """
    seconds, warm_up, short = (45.0, 30.0, 0.5) if settings.quick else (100.0, 40.0, 0.25)
    load, seeds = replace(_load(settings), buffer=100, seconds=seconds, warm_up=warm_up), _seeds(settings)
    cases: list[tuple[int, str, str, float]] = []
    for m in [3, 4] if settings.quick else [3, 4, 5]:
        cases.append((m, "nonaligned", "lagrange, pairwise", short))
        if not settings.quick:
            cases.append((m, "aligned", "lagrange, pairwise", short))
            cases += [(m, "nonaligned", name, 2.0) for name in POLICIES]
    rows: list[Row] = []
    for number, (m, kind, name, b) in enumerate(cases):
        what = f"{m} streams, {kind}, {name}, b = {b:g} s"
        settings.progress(number, len(cases), what)
        # Only the headline is worth the time of several seeds.
        own = seeds if kind == "nonaligned" and b == short else seeds[:1]
        cameras = aligned(m) if kind == "aligned" else nonaligned(m)
        row = _compared(camera_join(m, basic=b), cameras, 100.0, load, POLICIES[name], own, what)
        rows.append({"m": m, "streams": kind, "policy": name, "b": b, **row})
    headline = {}
    for row in rows:
        b = "" if row["b"] == short else "_b2" if row["policy"] == "lagrange, pairwise" else "_paper"
        headline[f"gain_{row['m']}way_{row['streams']}{b}"] = row["gain"]
    most = max(m for m, *_ in cases)
    require(
        headline[f"gain_{most}way_nonaligned"] > headline["gain_3way_nonaligned"],
        "the gain should grow with the number of streams",
    )
    params = _params(load, settings, rate=100, seeds=seeds)
    return Result("grubjoin-fig13", params, rows, headline)


def fig14(settings: Settings) -> Result:
    """Lengths of basic windows, for several strengths of time correlations."""
    lengths = [0.5, 2.0, 5.0] if settings.quick else [0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0]
    kappas = [25.0] if settings.quick else [25.0, 50.0, 75.0]
    load = _load(settings)
    rows: list[Row] = []
    cases = [(k, b) for k in kappas for b in lengths]
    for number, (kappa, b) in enumerate(cases):
        settings.progress(number, len(cases), f"kappa = {kappa:g}, b = {b:g} s")
        tables = tables_of(Cameras((0, 5, 15), (2, 2, kappa)), 200.0, load.seconds, settings.seed)
        join = camera_join(3, basic=b)
        run = grub(join, tables, load).outcome
        effort = float(np.mean([step.effort for step in run.steps[-4:]])) / (load.adapt * load.capacity)
        rows.append(
            {
                "kappa_3": kappa,
                "b": b,
                "slices": round(20 / b),
                **_alone(run, load),
                "effort": round(effort, 5),
            }
        )
    efforts = [row["effort"] for row in rows if row["kappa_3"] == kappas[0]]
    require(efforts == sorted(efforts, reverse=True), "smaller basic windows should cost more effort")
    headline = {f"best_b_kappa_{k:g}": _argmax(rows, "b", kappa_3=k) for k in kappas}
    return Result("grubjoin-fig14", _params(load, settings, m=3, rate=200), rows, headline)


def fig15(settings: Settings) -> Result:
    """Lengths of the adaptation interval while rates change: 100, 150, then 50 rows per second."""
    intervals = [1.0, 5.0] if settings.quick else [0.5, 1.0, 2.0, 3.0, 5.0, 8.0]
    sizes = [3] if settings.quick else [3, 4, 5]
    rows: list[Row] = []
    cases = [(m, adapt) for m in sizes for adapt in intervals]
    for number, (m, adapt) in enumerate(cases):
        settings.progress(number, len(cases), f"{m} streams, every {adapt:g} s")
        load = _load(settings, adapt=adapt, seconds=68.0 if not settings.quick else 44.0)
        turn = [Phase(8, rate, nonaligned(m)) for rate in (100.0, 150.0, 50.0)]
        phases = [Phase(20, 100.0, nonaligned(m)), *turn, *turn][: 1 + round((load.seconds - 20) / 8)]
        run = grub(camera_join(m), phase_tables(phases, settings.seed), load).outcome
        rows.append({"m": m, "adapt": adapt, **_alone(run, load)})
    headline = {f"best_adapt_{m}way": _argmax(rows, "adapt", m=m) for m in sizes}
    require(all(row["grubjoin"] > 0 for row in rows), "a run without results")
    return Result("grubjoin-fig15", _params(load, settings, rates=[100, 150, 50]), rows, headline)


def table2(settings: Settings) -> Result:
    """The cost of a join condition: what GrubJoin gains when a comparison costs more."""
    costs = [1, 4] if settings.quick else [1, 2, 4, 6, 8, 10]
    rows: list[Row] = []
    for number, cost in enumerate(costs):
        settings.progress(number, len(costs), f"cost x {cost}")
        load = _load(settings, comparison=float(cost))
        tables = tables_of(nonaligned(3), 75.0, load.seconds, settings.seed)
        compared = compare(camera_join(3), tables, load)
        rows.append({"cost": cost, **checked(compared, load, f"cost x {cost}")})
    gains = {row["cost"]: row["gain"] for row in rows}
    require(gains[costs[-1]] > gains[costs[0]] - 0.01, "a dearer condition should not make the gain smaller")
    headline = {f"gain_cost_{cost}": gain for cost, gain in gains.items()}
    return Result("grubjoin-table2", _params(load, settings, m=3, rate=75), rows, headline)


def fig17(settings: Settings) -> Result:
    """Two joins with different windows, with load shedding forced on them.

    The first has the larger window and the same time correlations, so it can do without more of it.
    """
    steps = [0.0, 0.35, 0.8] if settings.quick else [0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9]
    each, start = 10.0, 30.0
    rate = 60.0
    seconds = start + each * len(steps)
    shares = [max(1e-3, 1 - shed) for shed in steps for _ in range(round(each / 5))]
    cameras = Cameras((0.0, 4.0), (2.0, 10.0))
    tables = tables_of(cameras, rate, seconds, settings.seed)
    rows: list[Row] = []
    load = Load(seconds=seconds, warm_up=start, tick=0.1)
    for number, window in enumerate((30.0, 10.0)):
        join = camera_join(2, window=window, basic=window / 10)
        settings.progress(number, 2, f"window of {window:g} s")
        # The first intervals fill the windows; the shares begin when they are full.
        run = grub(join, tables, load, throttle=Forced([1.0] * (round(start / 5) - 1) + shares)).outcome
        full = stepwise(join, tables, load)
        for part, shed in enumerate(steps):
            own, whole = _within(run.steps, start, each, part), _within(full, start, each, part)
            rows.append(
                {
                    "window": window,
                    "shed": shed,
                    "output": round(own[0] / max(1, whole[0]), 4),
                    "work": round(own[1] / max(1.0, whole[1]), 4),
                }
            )
    by = {(row["window"], row["shed"]): row["output"] for row in rows}
    require(all(row["output"] <= 1.0 + 1e-9 for row in rows), "more results than the full join has")
    headline = {f"output_w{w:g}_shed_{shed:g}": by[w, shed] for w in (30.0, 10.0) for shed in steps[1:]}
    params = {"rate": rate, "windows": [30, 10], "lag": 4, "kappa": [2, 10], "seed": settings.seed}
    return Result("grubjoin-fig17", params, rows, headline)


def stepwise(join: Join, tables: Sequence[pa.Table], load: Load) -> list[Step]:
    """The exact join, interval by interval."""
    run = grub(join, tables, load, replace(OURS, shred=0.0), throttle=Forced([1.0]))
    return run.outcome.steps


def _within(steps: Sequence[Step], start: float, each: float, part: int) -> tuple[int, float]:
    """Results and work of one part; its first interval ends after it began."""
    low, high = start + part * each, start + (part + 1) * each
    own = [step for step in steps if low + 1 < step.at <= high + 1]
    return sum(step.results for step in own), sum(step.work for step in own)


def _alone(run: Any, load: Load) -> Row:
    return {
        "grubjoin": round(run.output_rate, 1),
        "utilisation": round(run.work_rate / load.capacity, 4),
        "lost": round(run.loss, 4),
    }


def _argmax(rows: Sequence[Row], name: str, **where: Any) -> float:
    own = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return float(max(own, key=lambda row: row["grubjoin"])[name])
