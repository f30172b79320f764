"""Dual windows beside random and value-based shedding, by the speed of the streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.rivals import Ran, Rivals, capacity_for
from sparkshed.experiments.traces import Trace
from sparkshed.workloads.keyed import keyed_tables
from sparkshed.workloads.recorded import airport_tables, file_tables

#: V_opt of the paper for W = 400 and Zipf values, rows per second of each stream.
V_OPT = 117.396
#: Rows of a window over recorded values, as in the paper; and as many departures as there are temperatures.
_RECORDED, _DEPARTURES = 1000, 8700
#: How much more work than planned may be done. What is owed at the end is up to two intervals' work, and a
#: year of recorded values has few intervals.
_TOLERATED, _TOLERATED_RECORDED = 1.03, 1.06
#: Speeds over V_opt. Past it windows of rows that were let in would span seasons of recorded values.
_FACTORS, _FACTORS_RECORDED = (0.2, 0.4, 0.7, 1, 1.5, 3), (0.2, 0.4, 0.7, 1)


def zipf_tables(settings: Settings, skew: float) -> tuple[pa.Table, ...]:
    """Streams of 50 values."""
    seconds = 100 if settings.quick else 200
    seeds = (2 * settings.seed, 2 * settings.seed + 1)
    return keyed_tables(100, seconds, keys=50, skew=skew, seeds=seeds)


def fig5(settings: Settings) -> Result:
    """Front and rear beside rear only: the output stays where it is past V_opt, or falls to nothing."""
    # At several times V_opt a quick run would end before it has settled, so only its speeds are fewer.
    tables = zipf_tables(replace(settings, quick=False), 1.0)
    runs = Rivals(tables, 400, capacity_for(Trace.of(tables, 400), V_OPT), settings.seed)
    factors = (0.5, 1.5, 5) if settings.quick else (0.2, 0.4, 0.7, 1, 1.5, 3, 5)
    rows: list[Row] = []
    for number, factor in enumerate(factors):
        speed = factor * V_OPT
        settings.progress(number, len(factors), f"{speed:.0f} rows/s")
        found = {"dual": runs.dual(speed), "dual_sql": runs.dual(speed, of_kept=False)}
        # Past V_w there is no time for a single probe, so that nothing needs to be run.
        if 2 * speed * runs.trace.costs.update < runs.capacity:
            found["rear"] = runs.dual(speed, rear_only=True)
        row: Row = {"speed": round(speed, 1), "rear": 0.0}
        for name, own in found.items():
            # In SQL there are few rows in a window, and those of a probe's own batch weigh more than planned.
            fits = name == "dual_sql" or own.spent <= _TOLERATED
            require(fits, f"{name}, {speed:.0f} rows/s: more work than the CPU can do")
            row |= {name: _per_second(own.results, own, speed), f"spent_{name}": round(own.spent, 3)}
        rows.append(row)
    flat = _flat(rows, V_OPT)
    require(flat >= 0.9, f"beyond V_opt the output falls to {flat:.2f} of the highest")
    # At V_opt nothing is to be dropped in front, so that both are the same.
    behind = all(row["rear"] < row["dual"] for row in rows if row["speed"] > round(V_OPT, 1))
    require(behind, "past V_opt, rear shedding alone should find less")
    headline = {"flat_ratio": flat, "v_opt": round(runs.optimum, 2)}
    return Result("dual-fig5", _params(runs, settings), rows, headline)


def _per_second(results: float, own: Ran, speed: float) -> float:
    return round(results / own.rows * 2 * speed, 1)


def _flat(rows: Sequence[Row], speed: float) -> float:
    """The lowest output of dual windows past V_opt, over the highest at any speed."""
    past = [row["dual"] for row in rows if row["speed"] >= round(speed, 1)]
    return round(min(past) / max(row["dual"] for row in rows), 4)


def _params(runs: Rivals, settings: Settings, **more: Any) -> dict[str, Any]:
    return {"rows": runs.trace.rows, "capacity": round(runs.capacity), "seed": settings.seed, **more}


def _compared(
    name: str,
    settings: Settings,
    runs: Rivals,
    factors: Sequence[float] = _FACTORS,
    tolerated: float = _TOLERATED,
    **more: Any,
) -> Result:
    """All strategies over speeds from below the capacity to beyond V_opt."""
    best = runs.optimum
    factors = (0.5, 1) if settings.quick else factors
    rows: list[Row] = []
    leads: dict[str, list[float]] = {"prob": [], "rand": [], "opt": [], "hindsight": []}
    for number, factor in enumerate(factors):
        speed = factor * best
        settings.progress(number, len(factors), f"{speed:.0f} rows/s")
        own = runs.dual(speed)
        require(own.spent <= tolerated, f"{speed:.0f} rows/s: more work than the CPU can do")
        found = {"dual": own.results, "prob": runs.prob(own), "rand": runs.rand(own), "opt": runs.opt(own)}
        found["hindsight"] = runs.prob(own, hindsight=True)
        require(own.results <= found["opt"] * (1 + 1e-9), f"{speed:.0f} rows/s: more results than OPT has")
        for key, values in leads.items():
            values.append(own.results / found[key])
        rates = {key: _per_second(value, own, speed) for key, value in found.items()}
        share = round(own.results / runs.ideal(own), 4)
        rows.append({"speed": round(speed, 1), **rates, "of_ideal": share, "spent": round(own.spent, 3)})
    headline = {
        "opt_share_min": round(min(leads["opt"]), 4),
        "flat_ratio": _flat(rows, best),
        **{f"over_{key}_min": round(min(leads[key]), 4) for key in ("prob", "rand")},
        **{f"over_{key}_max": round(max(leads[key]), 4) for key in ("prob", "rand")},
        "over_prob_with_hindsight_min": round(min(leads["hindsight"]), 4),
        "v_opt": round(best, 2),
    }
    require(headline["over_rand_min"] >= 1 - 1e-9, "fewer results than RAND has")
    require(headline["over_prob_min"] >= 1 - 1e-9, "fewer results than PROB has")
    require(headline["opt_share_min"] >= 0.9, f"only {headline['opt_share_min']} of the results of OPT")
    return Result(name, _params(runs, settings, **more), rows, headline)


def _zipf(name: str, settings: Settings, rows: int, skew: float) -> Result:
    capacity = capacity_for(Trace.of(zipf_tables(settings, 1.0), 400), V_OPT)
    runs = Rivals(zipf_tables(settings, skew), rows, capacity, settings.seed)
    return _compared(name, settings, runs, skew=skew)


def fig6(settings: Settings) -> Result:
    """W = 400, Zipf values."""
    return _zipf("dual-fig6", settings, 400, 1.0)


def fig7(settings: Settings) -> Result:
    """W = 800, Zipf values, on the same CPU."""
    return _zipf("dual-fig7", settings, 800, 1.0)


def fig8(settings: Settings) -> Result:
    """W = 400, uniform values."""
    return _zipf("dual-fig8", settings, 400, 0.0)


def fig9(settings: Settings) -> Result:
    """Recorded values: temperatures and departures at two airports, or the file that the user named."""
    rows = 400 if settings.quick else _RECORDED
    if settings.data is None:
        pair = ("EWR", "JFK")
        known = {
            "temperature": airport_tables("temp", pair),
            "destination": airport_tables("dest", pair, _DEPARTURES),
        }
    else:
        known = {settings.data.stem: file_tables(settings.data, settings.key, settings.streams)}
    found = {}
    for name, tables in known.items():
        runs = Rivals(tables, rows, capacity_for(Trace.of(tables, rows), V_OPT), settings.seed)
        found[name] = _compared("dual-fig9", settings, runs, _FACTORS_RECORDED, _TOLERATED_RECORDED)
    headlines = [own.headline for own in found.values()]
    headline = {
        key: (max if key.endswith("_max") else min)(own[key] for own in headlines) for key in headlines[0]
    }
    own_rows = [{"data": name, **row} for name, own in found.items() for row in own.rows]
    params = {name: own.params for name, own in found.items()}
    return Result("dual-fig9", {"W": rows, "seed": settings.seed, **params}, own_rows, headline)
