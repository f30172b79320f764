"""Dual windows beside random and value-based shedding, by the speed of the streams.

The values of the rows are the same at every speed; what changes is how much work there is time for. A CPU of
C units per second leaves z = C / (V_s · F) of the full work F of each row. Dual windows run in the operator
with that budget. The baselines decide row by row, and their results are counted from the yields of the rows
that probe, which is what the operator finds for them.

RAND drops rows in front at random; the others are joined in full. PROB drops as many rows in front as dual
windows do, and lets those probe whose value was most frequent so far in the other stream. OPT knows all
yields beforehand: for the best share of rows to drop at random in front it lets the rows with the most
results for their work probe, whenever they come. No strategy that drops at random in front can have more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.dual import Dual
from sparkshed.engine.waiting import chances, standing
from sparkshed.experiments.joins import keyed_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.traces import BATCH, Trace, opt
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import Split, optimum, split
from sparkshed.planner.dualling import DualAdapter
from sparkshed.workloads.keyed import keyed_tables

#: The part of a run that counts: windows, aux windows and choices have settled by then.
_COUNTS = 0.4
#: Shares of rows that OPT tries to keep in front.
_KEEPS = np.geomspace(0.02, 1.0, 24)
#: V_opt of the paper for W = 400 and Zipf values, rows per second of each stream.
V_OPT = 117.396
_ORDERS = ((1,), (0,))


class Runs:
    """All strategies over one trace, with the work of one CPU."""

    def __init__(self, tables: Sequence[pa.Table], rows: int, capacity: float, seed: int) -> None:
        """Look at the trace once.

        Args:
            tables: Two streams.
            rows: W.
            capacity: Work units per second.
            seed: Of random choices.
        """
        self.tables, self.trace, self.seed = tables, Trace.of(tables, rows), seed
        self.capacity, self.full = capacity, self.trace.full
        self._shares = self.trace.shares
        self._counts = np.arange(len(self.trace.streams)) >= (1 - _COUNTS) * len(self.trace.streams)
        self._frequencies = self.trace.frequencies()
        self._opt = [(keep, kept, self.trace.yields(kept)) for keep, kept in self._kept()]

    def _kept(self) -> list[tuple[float, Bools]]:
        return [(keep, self.trace.kept(keep, self.seed)) for keep in _KEEPS.tolist()]

    def budget(self, speed: float) -> float:
        """z, where each stream has so many rows per second."""
        return min(1.0, self.capacity / (2 * speed * self.full))

    def split(self, speed: float, *, rear_only: bool = False) -> Split:
        """What is shed where values and costs are known."""
        budget = self.budget(speed)
        if budget >= 1:
            return Split(1.0, 0.0, 1 / budget)
        matched = np.arange(len(self._shares), dtype=np.float64)
        costs = self.trace.costs
        return split(matched, self._shares, costs, budget, of_kept=True, rear_only=rear_only)

    def per_second(self, results: float, rows: float, speed: float) -> float:
        """Results per second, of so many rows."""
        return results / rows * 2 * speed

    def dual(self, speed: float, *, of_kept: bool = True, rear_only: bool = False) -> tuple[float, float]:
        """Dual windows in the operator: results per second, and work over what there is time for."""
        # Past V_w there is no time for a single probe, so that nothing needs to be run.
        if rear_only and 2 * speed * self.trace.costs.update >= self.capacity:
            return 0.0, 1.0
        join, configuration = keyed_join(self.trace.rows, indexed=False), Configuration(_ORDERS)
        strategy = Dual(configuration, np.random.default_rng(self.seed), of_kept=of_kept)
        policy = Policy(follows=True)
        adapter = DualAdapter(configuration, join.spec.slices, join.graph, policy)
        adapter.knows(join.spec)
        adapter.of_kept, adapter.rear_only = of_kept, rear_only
        operator = JoinOperator(join.spec, strategy)
        begin = [0, 0]
        results = work = rows = 0
        start = 0
        while start < len(self.trace.streams):
            part = self.trace.streams[start : start + round(BATCH / min(strategy.configuration.keep))]
            batch = {}
            for s in (0, 1):
                count = int((part == s).sum())
                batch[s], begin[s] = self.tables[s].slice(begin[s], count), begin[s] + count
            before = operator.statistics.work
            found = sum(chunk.num_rows for chunk in operator.process(batch))
            operator.tidy()
            if self._counts[start]:
                results, rows = results + found, rows + len(part)
                work += operator.statistics.work - before
            strategy.configure(adapter.adapt(strategy.take(), self.budget(speed)))
            start += len(part)
        spent = work / (rows * self.full * self.budget(speed))
        return self.per_second(results, rows, speed), spent

    def rand(self, speed: float) -> float:
        """Rows that are dropped at random in front of the join."""
        kept = self.trace.kept(self.budget(speed), self.seed)
        found = self.trace.yields(kept)
        return self.per_second(float(found[self._counts].sum()), float(self._counts.sum()), speed)

    def prob(self, speed: float) -> float:
        """Rows whose value was frequent in the other stream probe; as many as those of dual windows."""
        best = self.split(speed)
        kept = self.trace.kept(best.keep, self.seed)
        found = self.trace.yields(kept)
        probing = np.zeros(len(kept), bool)
        for s in (0, 1):
            own = np.flatnonzero(kept & (self.trace.streams == s))
            # Frequencies grow with time; their share of all rows so far does not.
            score = (1e6 * self._frequencies[own] / (own + 1)).astype(np.int64)
            ends = np.arange(1, len(own) + 1)
            begins = np.maximum(0, ends - self.trace.rows)
            lower, equal = standing(score, begins, ends)
            probing[own] = lower + chances(self.seed, 1, own) * equal >= best.rear * (ends - begins)
        probing, rows, costs = probing & self._counts, float(self._counts.sum()), self.trace.costs
        left = rows * self.full * self.budget(speed) - costs.update * float((kept & self._counts).sum())
        units = float((costs.probe + costs.scan + costs.match * found[probing]).sum())
        # Where its rows take more work than there is, it must leave some of them out.
        share = min(1.0, max(0.0, left / units)) if units else 0.0
        return self.per_second(share * float(found[probing].sum()), rows, speed)

    def opt(self, speed: float) -> float:
        """The most that can be had by any choice of rows that probe."""
        rows = float(self._counts.sum())
        limit = rows * self.full * self.budget(speed)
        if self.budget(speed) >= 1:
            limit = np.inf
        best = max(
            opt(found[self._counts], kept[self._counts], self.trace.costs, limit)
            for _, kept, found in self._opt
        )
        return self.per_second(best, rows, speed)

    @property
    def optimum(self) -> float:
        """V_opt, rows per second of each stream, by the paper's formula."""
        probe = self.full - self.trace.costs.update
        best = optimum(self._shares, self.capacity / probe, self.capacity / self.trace.costs.update)
        return best.speed / 2


def capacity_for(tables: Sequence[pa.Table], rows: int, speed: float) -> float:
    """Work units per second with which V_opt is a given speed."""
    trace = Trace.of(tables, rows)
    update = trace.costs.update
    return 2 * speed / optimum(trace.shares, 1 / (trace.full - update), 1 / update).speed


def zipf_tables(settings: Settings, skew: float) -> tuple[pa.Table, ...]:
    """Streams of 50 values."""
    seconds = 100 if settings.quick else 200
    seeds = (2 * settings.seed, 2 * settings.seed + 1)
    return keyed_tables(100, seconds, keys=50, skew=skew, seeds=seeds)


def fig5(settings: Settings) -> Result:
    """Front and rear beside rear only: the output stays where it is past V_opt, or falls to nothing."""
    # At several times V_opt a quick run would end before it has settled, so only its speeds are fewer.
    tables = zipf_tables(replace(settings, quick=False), 1.0)
    runs = Runs(tables, 400, capacity_for(tables, 400, V_OPT), settings.seed)
    factors = (0.5, 1, 5) if settings.quick else (0.2, 0.4, 0.7, 1, 1.5, 3, 5)
    rows: list[Row] = []
    for number, factor in enumerate(factors):
        speed = factor * V_OPT
        settings.progress(number, len(factors), f"{speed:.0f} rows/s")
        dual, spent = runs.dual(speed)
        rear, _ = runs.dual(speed, rear_only=True)
        sql, _ = runs.dual(speed, of_kept=False)
        require(spent <= 1.03, f"{speed:.0f} rows/s: more work than the CPU can do")
        rows.append(
            {
                "speed": round(speed, 1),
                "dual": round(dual, 1),
                "rear": round(rear, 1),
                "dual_sql": round(sql, 1),
                "spent": round(spent, 3),
            }
        )
    flat = _flat(rows, V_OPT)
    require(flat >= 0.9, f"beyond V_opt the output falls to {flat:.2f} of the highest")
    behind = all(row["rear"] < row["dual"] for row in rows if row["speed"] >= round(V_OPT, 1))
    require(behind, "from V_opt on, rear shedding alone should find less")
    headline = {"flat_ratio": flat, "v_opt": round(runs.optimum, 2)}
    return Result("dual-fig5", _params(runs, settings), rows, headline)


def _flat(rows: Sequence[Row], speed: float) -> float:
    """The lowest output of dual windows past V_opt, over the highest at any speed."""
    past = [row["dual"] for row in rows if row["speed"] >= round(speed, 1)]
    return round(min(past) / max(row["dual"] for row in rows), 4)


def _params(runs: Runs, settings: Settings, **more: Any) -> dict[str, Any]:
    return {"rows": runs.trace.rows, "capacity": round(runs.capacity), "seed": settings.seed, **more}


def _compared(
    name: str, settings: Settings, tables: Sequence[pa.Table], rows: int, capacity: float, **more: Any
) -> Result:
    """All strategies over speeds from below the capacity to far beyond V_opt."""
    runs = Runs(tables, rows, capacity, settings.seed)
    best = runs.optimum
    factors = (0.5, 1) if settings.quick else (0.2, 0.4, 0.7, 1, 1.5, 3)
    found: list[Row] = []
    for number, factor in enumerate(factors):
        speed = factor * best
        settings.progress(number, len(factors), f"{speed:.0f} rows/s")
        dual, spent = runs.dual(speed)
        require(spent <= 1.03, f"{speed:.0f} rows/s: more work than the CPU can do")
        own = {"dual": dual, "prob": runs.prob(speed), "rand": runs.rand(speed), "opt": runs.opt(speed)}
        found.append(
            {
                "speed": round(speed, 1),
                **{key: round(value, 1) for key, value in own.items()},
                "spent": round(spent, 3),
            }
        )
    share = min(row["dual"] / row["opt"] for row in found)
    lead = {k: round(min(row["dual"] / row[k] for row in found), 4) for k in ("prob", "rand")}
    headline = {
        "opt_share_min": round(share, 4),
        "flat_ratio": _flat(found, best),
        "over_prob_min": lead["prob"],
        "over_rand_min": lead["rand"],
        "over_prob_max": round(max(row["dual"] / row["prob"] for row in found), 4),
        "over_rand_max": round(max(row["dual"] / row["rand"] for row in found), 4),
        "v_opt": round(best, 2),
    }
    require(all(row["dual"] <= 1.02 * row["opt"] for row in found), "more results than OPT has")
    require(lead["rand"] >= 0.98, "fewer results than RAND has")
    require(share >= 0.9, f"only {share:.2f} of the results of OPT")
    return Result(name, _params(runs, settings, **more), found, headline)


def _zipf(name: str, settings: Settings, rows: int, skew: float) -> Result:
    base = zipf_tables(settings, 1.0)
    capacity = capacity_for(base, 400, V_OPT)
    return _compared(name, settings, zipf_tables(settings, skew), rows, capacity, skew=skew)


def fig6(settings: Settings) -> Result:
    """W = 400, Zipf values."""
    return _zipf("dual-fig6", settings, 400, 1.0)


def fig7(settings: Settings) -> Result:
    """W = 800, Zipf values, on the same CPU."""
    return _zipf("dual-fig7", settings, 800, 1.0)


def fig8(settings: Settings) -> Result:
    """W = 400, uniform values."""
    return _zipf("dual-fig8", settings, 400, 0.0)
