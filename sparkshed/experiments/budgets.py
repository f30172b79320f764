"""Budgets that are promised: what every chooser spends, over what it may."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import pyarrow as pa

from sparkshed.experiments.harness import Forced, Load, Outcome
from sparkshed.experiments.joins import Join, Orders, camera_join
from sparkshed.experiments.output import tables_of
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import PAPER, exact, grub
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.harvest import CHOOSERS, METRICS
from sparkshed.workloads.cameras import Cameras

#: Every chooser with pairwise histograms, the default one with one per stream, and the paper's policy.
POLICIES = {
    **{name: Policy(chooser=name) for name in CHOOSERS if name != "greedy"},
    **{metric: Policy(chooser="greedy", metric=metric) for metric in METRICS},
    "per_stream": Policy(per_stream=True),
    "paper": PAPER,
}
#: How far what is spent may be from the budget, averaged over a run.
CLOSE = 0.05
RATE, WARM_UP, SECONDS = 80.0, 20.0, 80.0
CAMERAS = Cameras((0, 3, 7), (2, 2, 30))


def budget(settings: Settings) -> Result:
    """Work over the budget, and the share of results, for every chooser with scans and with indexes.

    The full work is an estimate from the rows that are shredded, so a run has a minute to learn it.
    """
    seeds = [own.seed for own in settings.repeats(3)]
    policies = ["lagrange", "best_delta"] if settings.quick else list(POLICIES)
    shares = [0.3] if settings.quick else [0.1, 0.3, 0.7]
    points = list(product(seeds, (False, True), shares, policies))
    rows: list[Row] = []
    for done, (seed, indexed, z, name) in enumerate(points):
        settings.progress(done, len(points), f"{name}, z = {z:g}, seed {seed}")
        spent, found = spent_and_found(POLICIES[name], z, seed=seed, indexed=indexed)
        rows.append(
            {
                "chooser": name,
                "indexed": indexed,
                "z": z,
                "seed": seed,
                "spent": round(spent, 4),
                "results": round(found, 4),
            }
        )
    spent = [row["spent"] for row in rows]
    headline = {
        "least_spent": min(spent),
        "most_spent": max(spent),
    }
    missed = [row for row in rows if abs(row["spent"] - 1) > CLOSE]
    require(not missed, f"budgets should be kept within 5 %: {missed}")
    params = {"rate": RATE, "seconds": SECONDS - WARM_UP, "seeds": seeds}
    return Result("grubjoin-budget", params, rows, headline)


def spent_and_found(
    policy: Policy,
    z: float,
    *,
    cameras: Cameras = CAMERAS,
    rate: float = RATE,
    seed: int = 0,
    indexed: bool = False,
    seconds: float = SECONDS,
) -> tuple[float, float]:
    """Work over the budget, and the share of all results."""
    load = Load(seconds=seconds, warm_up=WARM_UP, tick=0.25)
    join = _join(len(cameras.tau), indexed)
    tables = _tables(cameras, rate, seconds, seed)
    run = grub(join, tables, load, policy, throttle=Forced([z]), seed=seed + 1)
    whole = _whole(cameras, rate, seconds, seed, indexed, run.order_changes)
    spent = run.outcome.statistics.work / (z * whole.statistics.work)
    return spent, run.outcome.results / whole.results


def _join(m: int, indexed: bool) -> Join:
    return camera_join(m, window=10, basic=1, indexed=indexed)


@cache
def _tables(cameras: Cameras, rate: float, seconds: float, seed: int) -> Sequence[pa.Table]:
    return tables_of(cameras, rate, seconds, seed=seed)


@cache
def _whole(
    cameras: Cameras, rate: float, seconds: float, seed: int, indexed: bool, changes: tuple[Orders, ...]
) -> Outcome:
    """The exact join of the same rows, in the orders that the run had at each time: its full work."""
    load = Load(seconds=seconds, warm_up=WARM_UP, tick=0.25)
    join = _join(len(cameras.tau), indexed)
    return exact(join, _tables(cameras, rate, seconds, seed), load, changes=changes)
