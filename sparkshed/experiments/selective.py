"""Runs of `adaptive` on the paper's streams, and what they are compared with.

RandomDrop is compared with in two ways. Once it runs on the same clock, with the same capacity and the same
throttle. And what it finds with the work that `adaptive` did is known without a run: of two streams, any shares
that leave a share x of the work leave the same share of the results. Gains are over the better of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from math import inf

import numpy as np
import pyarrow as pa

from sparkshed.engine.strategies.adaptive import Adaptive
from sparkshed.engine.strategies.randomdrop import RandomDrop
from sparkshed.engine.threads import one_thread
from sparkshed.experiments.harness import Load, Outcome, Step, Throttling, simulate
from sparkshed.experiments.joins import Join
from sparkshed.experiments.result import Result, Settings
from sparkshed.experiments.runs import exact
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.adaptive import AdaptiveAdapter
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dropping import DropAdapter

RATE, TIME, DIRECTION = ("rate",), ("rate", "time"), ("rate", "time", "direction")
#: Settings of the join that are compared, by the adaptations that are on.
ADAPTATIONS = {"rate": RATE, "rate, time": TIME, "rate, time, direction": DIRECTION}
#: Work units per second. The exact join of two windows of 20 s takes 0.396 million at 100 rows per second and
#: stream, so that nothing is shed there, as in the paper; at 300 and 500 rows it takes 9 and 25 times that.
CAPACITY = 5e5


@dataclass(frozen=True, slots=True)
class Selected:
    """A run of `adaptive`, with r_1 and r_2 after each interval."""

    outcome: Outcome
    shares: list[tuple[float, ...]]


def select(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    adaptations: Sequence[str] = DIRECTION,
    *,
    seed: int = 1,
    throttle: Throttling | None = None,
) -> Selected:
    """Run `adaptive`."""
    policy = Policy(adapt=load.adapt, follows=throttle is None, adaptations=tuple(adaptations))
    configuration = Configuration(join.spec.orders, shred=policy.shred)
    adapter = AdaptiveAdapter(configuration, join.spec.slices, join.graph, policy)
    strategy = Adaptive(configuration, np.random.default_rng(seed))
    slices = sum(own.count for i, row in enumerate(join.spec.slices) for k, own in enumerate(row) if i != k)
    shares: list[tuple[float, ...]] = []

    def watch(step: Step) -> None:
        full = adapter.configuration.is_exact
        shares.append((1.0, 1.0) if full else adapter.shares)

    # A decision looks at every slice once.
    outcome = simulate(
        join, tables, load, strategy, adapter.adapt, throttle=throttle, effort=lambda: slices, watch=watch
    )
    return Selected(outcome, shares)


def drop(join: Join, tables: Sequence[pa.Table], load: Load, *, seed: int = 1) -> Outcome:
    """Run RandomDrop on the same clock; what it learns from costs it nothing."""
    policy = Policy(adapt=load.adapt, follows=True)
    configuration = Configuration(join.spec.orders, shred=policy.shred)
    adapter = DropAdapter(configuration, join.spec.slices, join.graph, policy)
    return simulate(join, tables, load, RandomDrop(configuration, np.random.default_rng(seed)), adapter.adapt)


def whole(join: Join, tables: Sequence[pa.Table], load: Load) -> Outcome:
    """Run the exact join."""
    return exact(join, tables, replace(load, capacity=inf))


def between(outcome: Outcome, start: float, stop: float) -> tuple[float, float]:
    """Results and work of the intervals that end in a time; an interval may end a little late."""
    steps = [step for step in outcome.steps if start + 2 < step.at <= stop + 2]
    return float(sum(step.results for step in steps)), float(sum(step.work for step in steps))


def on_one_thread(run: Callable[[Settings], Result]) -> Callable[[Settings], Result]:
    """Keep the matrix products of an experiment, which are small, on one thread."""

    @wraps(run)
    def limited(settings: Settings) -> Result:
        with one_thread():
            return run(settings)

    return limited
