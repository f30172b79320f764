"""Runs that are compared: GrubJoin, the exact join, and RandomDrop with the same work.

RandomDrop gets the best it can have. Its keep fractions solve the static optimisation for the costs and
selectivities of the exact join, measured on the same rows over the whole run; it uses the orders that
GrubJoin ended with; its buffers lose nothing; and its work is brought to that of GrubJoin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools
from sparkshed.engine.strategies.exact import Exact
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.limited import LimitedGrubJoin
from sparkshed.experiments.effort import effort_of
from sparkshed.experiments.harness import Load, Outcome, Step, Throttling, simulate
from sparkshed.experiments.joins import Join, Orders
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.harvesting import HarvestAdapter
from sparkshed.planner.randomdrop import DropDirection, DropHop, keep_fractions

#: The paper's GrubJoin: its chooser, its histograms, its orders; its throttle does not know how busy it was.
PAPER = Policy(chooser="greedy", metric="best_delta", per_stream=True, by_selectivity=True)
#: Seconds of input in a batch where no clock runs.
_BATCH = 0.25
#: Work of RandomDrop and GrubJoin may differ by this share.
CLOSE = 0.03
_ATTEMPTS = 8


class StaticDrop(Exact):
    """RandomDrop as in the paper: nothing is learned, and a row that is kept stays when more are kept."""

    def __init__(self, configuration: Configuration, seed: int) -> None:
        """Keep the shares that the configuration gives."""
        super().__init__(configuration)
        self._generators = [np.random.default_rng((seed, i)) for i, _ in enumerate(configuration.keep)]

    def admit(self, stream: int, count: int) -> Bools | None:
        """A random share of the rows."""
        return self._generators[stream].random(count) < self.configuration.keep[stream]


@dataclass(frozen=True, slots=True)
class Run:
    """An outcome, and the orders that the run ended with."""

    outcome: Outcome
    orders: Orders

    @property
    def order_changes(self) -> tuple[Orders, ...]:
        """The orders after each adaptation."""
        found = [step.configuration.orders for step in self.outcome.steps if step.configuration]
        return tuple(found)


def grub(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    policy: Policy | None = None,
    *,
    seed: int = 1,
    throttle: Throttling | None = None,
    buffering: Buffering | None = None,
    watch: Callable[[Step], None] = lambda step: None,
) -> Run:
    """Run GrubJoin, with windows of any size or limited ones; the paper's policy has the paper's throttle."""
    prices = buffering is not None and buffering.harvest
    policy = replace(policy or Policy(), adapt=load.adapt, follows=throttle is None, prices=prices)
    configuration = Configuration(join.spec.orders, shred=policy.shred)
    adapter = HarvestAdapter(configuration, join.spec.slices, join.graph, policy)
    rng, per_stream = np.random.default_rng(seed), policy.per_stream
    strategy: Learning = (
        GrubJoin(configuration, rng, per_stream=per_stream)
        if buffering is None
        else LimitedGrubJoin(configuration, buffering, rng, per_stream=per_stream)
    )
    if policy.by_selectivity:
        load = replace(load, measured=False)
    outcome = simulate(
        join,
        tables,
        load,
        strategy,
        adapter.adapt,
        throttle=throttle,
        effort=lambda: effort_of(adapter, policy),
        watch=watch,
    )
    return Run(outcome, adapter.configuration.orders)


def exact(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    orders: Orders | None = None,
    changes: Sequence[Orders] = (),
) -> Outcome:
    """Run the exact join; no clock limits it.

    Args:
        join: What is joined.
        tables: The rows of each stream.
        load: The circumstances.
        orders: The order of each direction at the start.
        changes: Orders after each adaptation, if they are not to stay.
    """
    strategy = Exact(Configuration(orders or join.spec.orders))
    coming = iter(changes)

    def adapt(tally: Tally, throttle: float) -> Configuration:
        return Configuration(next(coming, strategy.configuration.orders))

    return simulate(join, tables, _unlimited(load), strategy, adapt)


def drop(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    full: Outcome,
    work: float,
    orders: Orders,
    *,
    seed: int = 1,
) -> Outcome:
    """Run RandomDrop with so much work per second.

    Args:
        join: What is joined.
        tables: The rows of each stream.
        load: The circumstances; the clock does not limit it.
        full: The exact join of the same rows in the same orders.
        work: Work units per second.
        orders: The order of each direction.
        seed: Decides which rows are dropped.
    """
    best = keep_fractions(drop_directions(full, orders, load), work)
    tried: list[tuple[float, Outcome]] = []
    factor = 1.0
    for _ in range(_ATTEMPTS):
        keep = tuple(min(1.0, max(1e-6, x * factor)) if x < 1 else 1.0 for x in best)
        strategy = StaticDrop(Configuration(orders, keep=keep), seed)
        tried.append((factor, simulate(join, tables, _unlimited(load), strategy)))
        spent = tried[-1][1].work_rate
        if abs(spent - work) <= CLOSE / 3 * work or (min(keep) >= 1 and spent <= work) or spent <= 0:
            break
        factor = _next_factor(tried, work)
    return min(tried, key=lambda own: abs(own[1].work_rate - work))[1]


def _next_factor(tried: Sequence[tuple[float, Outcome]], work: float) -> float:
    """Between the nearest attempts on both sides, or beyond the last one."""
    below = [(o.work_rate, f) for f, o in tried if o.work_rate <= work]
    above = [(o.work_rate, f) for f, o in tried if o.work_rate > work]
    if not below or not above:
        factor, outcome = tried[-1]
        return float(factor * (work / outcome.work_rate) ** 0.5)
    (low, small), (high, large) = max(below), min(above)
    share = log(work / low) / log(high / low)
    return float(small * (large / small) ** min(max(share, 0.1), 0.9))


def drop_directions(full: Outcome, orders: Orders, load: Load) -> list[DropDirection]:
    """The model of RandomDrop, from what the exact join counted."""
    directions = []
    for origin, order in enumerate(orders):
        counted = full.statistics.directions[origin]
        rows = full.statistics.streams[origin].arrived
        entering = max(1.0, float(rows))
        hops = []
        for place, (target, hop) in enumerate(zip(order, counted.hops, strict=True)):
            work = load.comparison * hop.comparisons + hop.searches
            work += counted.results if place == len(order) - 1 else 0
            hops.append(DropHop(target, work / entering, hop.partials / entering))
            entering = max(1.0, float(hop.partials))
        directions.append(DropDirection(rows / full.seconds, tuple(hops)))
    return directions


@dataclass(frozen=True, slots=True)
class Compared:
    """GrubJoin beside RandomDrop with the same work, and beside the exact join."""

    grub: Outcome
    dropped: Outcome
    full: Outcome

    @property
    def gain(self) -> float:
        """Results beyond those of RandomDrop, as a share of these."""
        if not self.dropped.results:
            return inf if self.grub.results else 0.0
        return self.grub.results / self.dropped.results - 1

    @property
    def completeness(self) -> float:
        """The share of the exact join's results that GrubJoin delivered."""
        return self.grub.results / self.full.results if self.full.results else 1.0

    def row(self, load: Load) -> dict[str, object]:
        """What experiments print."""
        return {
            "grubjoin": round(self.grub.output_rate, 1),
            "randomdrop": round(self.dropped.output_rate, 1),
            "exact": round(self.full.output_rate, 1),
            "gain": round(self.gain, 4),
            "completeness": round(self.completeness, 4),
            "utilisation": round(self.grub.work_rate / load.capacity, 4),
            "utilisation_randomdrop": round(self.dropped.work_rate / load.capacity, 4),
            "lost": round(self.grub.loss, 4),
            "z": round(float(np.mean([step.throttle for step in self.grub.steps[-4:] or [Step(0.0)]])), 4),
        }


def compare(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    policy: Policy | None = None,
    *,
    seed: int = 1,
    full: Outcome | None = None,
) -> Compared:
    """Run all three over the same rows; `full` spares the exact join if it ran before, in any order."""
    run = grub(join, tables, load, policy, seed=seed)
    own = exact(join, tables, load, run.orders)
    dropped = drop(join, tables, load, own, run.outcome.work_rate, run.orders, seed=seed)
    return Compared(run.outcome, dropped, own)


def _unlimited(load: Load) -> Load:
    return replace(load, capacity=inf, tick=_BATCH)
