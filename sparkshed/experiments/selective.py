"""Runs of `adaptive` on the paper's streams, and what they are compared with.

RandomDrop is compared with in two ways. Once it runs on the same clock, with the same capacity and the same
throttle. And what it finds with the work that `adaptive` did is known without a run: of two streams, any
shares that leave a share x of the work leave the same share of the results. Gains are over the better one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.strategies.adaptive import Adaptive
from sparkshed.engine.strategies.randomdrop import RandomDrop
from sparkshed.engine.threads import one_thread
from sparkshed.experiments.harness import Load, Outcome, Step, Throttling, simulate
from sparkshed.experiments.joins import Join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.runs import exact
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.adaptive import AdaptiveAdapter
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dropping import DropAdapter
from sparkshed.workloads.drifting import PAPER_RATES, drifting_sets, paper_drift

Rates = Sequence[tuple[float, float]]

RATE, TIME, DIRECTION = ("rate",), ("rate", "time"), ("rate", "time", "direction")
#: Settings of the join that are compared, by the adaptations that are on.
ADAPTATIONS = {"rate": RATE, "rate, time": TIME, "rate, time, direction": DIRECTION}
#: Work units per second: about what is needed to keep up at 100 rows per second and stream, as the
#: paper does. The exact join of two windows of 20 s takes 0.396 million there, 9 and 25 times that at 300 and
#: 500 rows. With less, the throttle would leave out work at 100 rows (r below 0.95).
CAPACITY = 4.6e5
#: Streams, with the seed and those after it, that gains are averaged over.
REPEATS = 3
WINDOW = 20.0
#: The paper does not say which skew its figures over time have; it shows match probabilities for 0.6 and 0.8.
SKEW = 0.8
#: A second of input at the highest rate, as in the paper.
BUFFER = 500
WARM_UP = 20.0
_TICK = 0.2
#: The same rates with less of the time in which nothing is shed; and a look at them.
SHORT: Rates = ((30.0, 100.0), (15.0, 500.0), (30.0, 300.0))
QUICK: Rates = ((25.0, 100.0), (10.0, 500.0), (10.0, 300.0), (5.0, 100.0))


@dataclass(frozen=True, slots=True)
class Selected:
    """A run of `adaptive`, with the shares of both directions, r_2 and r_1, after each interval."""

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


def rates_of(settings: Settings) -> Rates:
    """The rates of figures over time."""
    return QUICK if settings.quick else PAPER_RATES


def phase_of(rates: Rates, rate: float) -> tuple[float, float]:
    """When the phase with a rate begins and ends; the first one of them."""
    place = [own for _, own in rates].index(rate)
    start = sum(seconds for seconds, _ in rates[:place])
    return start, start + rates[place][0]


def rate_at(rates: Rates, at: float) -> float:
    """The rate of an interval that ends at a time."""
    ends = np.cumsum([seconds for seconds, _ in rates])
    place = int(ends.searchsorted(at - 2))
    return rates[min(place, len(rates) - 1)][1]


def load_of(rates: Rates, **changes: Any) -> Load:
    """The circumstances of a run over rates."""
    plain = {"capacity": CAPACITY, "buffer": BUFFER, "warm_up": WARM_UP, "tick": _TICK}
    return Load(seconds=sum(seconds for seconds, _ in rates), **plain | changes)


def streams_of(
    skew: float,
    rates: Rates,
    settings: Settings,
    *,
    aligned: bool = False,
    window: float = WINDOW,
    vectors: bool = True,
) -> tuple[pa.Table, ...]:
    """The paper's streams."""
    drift, seed = paper_drift(window, skew, aligned=aligned), 100 * settings.seed
    return drifting_sets(drift, rates, seeds=(seed, seed + 1), vectors=vectors)


def result_of(
    name: str, settings: Settings, rates: Rates, rows: list[Row], headline: Row, **more: Any
) -> Result:
    """A result with the parameters that all experiments have in common."""
    plain = {"capacity": CAPACITY, "buffer": BUFFER, "rates": [list(own) for own in rates], "window": WINDOW}
    return Result(f"adaptive-{name}", {**plain, "adapt": 5, "seed": settings.seed, **more}, rows, headline)


def checked(outcome: Outcome, full: Outcome, what: str) -> Outcome:
    """Refuse a run that found or did more than there is."""
    require(outcome.results <= full.results * 1.02, f"{what}: more results than the exact join has")
    require(outcome.work_rate <= 1.05 * CAPACITY, f"{what}: more work than the CPU can do")
    return outcome


def over_seeds(
    settings: Settings, measure: Callable[[Settings], tuple[list[Row], Row]]
) -> tuple[list[Row], Row, int]:
    """The rows of the first seed; all gains, as means and the least of each; and how many seeds there are."""
    repeats = settings.repeats(REPEATS)
    rows: list[list[Row]] = []
    gains: list[Row] = []
    for number, own in enumerate(repeats):
        settings.progress(number, len(repeats), f"seed {own.seed}")
        found, gained = measure(own)
        rows.append(found)
        gains.append(gained)
    means = {name: round(float(np.mean([own[name] for own in gains])), 4) for name in gains[0]}
    return rows[0], means | {f"least_{name}": min(own[name] for own in gains) for name in means}, len(repeats)
