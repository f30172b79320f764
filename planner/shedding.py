"""What a physical plan sheds: the work it may spend, how that is spent, and what is expected of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparkshed.planner.adaptation import Adapter, Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dropping import DropAdapter
from sparkshed.planner.dualling import DualAdapter
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.learning import Learned, learned_model
from sparkshed.planner.harvest.model import DirectionModel
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.harvesting import HarvestAdapter
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.statistics import StreamStatistics
from sparkshed.sql.hint import ShedHint

#: Rows of the master that a pilot looks at: a share of all, within limits.
PILOT_SHARE = 0.05
FEWEST_ROWS = 200
MOST_ROWS = 1_000
#: Stretches of time that they are taken from.
STRETCHES = 4


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a pilot made of the plan.

    Attributes:
        work: Share of the full join's work that will be spent.
        completeness: Share of its results that will be found.
        pilot_rows: Rows that the pilot joined.
        pilot_work: The pilot's own work, as a share of the full join's.
    """

    work: float
    completeness: float
    pilot_rows: int
    pilot_work: float


@dataclass(frozen=True, slots=True)
class Shedding:
    """How a join sheds load; picklable, and the same on every worker.

    `speed` is V_opt of dual windows over the rate of the input, if that is expected.
    """

    strategy: str
    budget: float
    policy: Policy
    graph: JoinGraph
    seed: int
    configuration: Configuration
    prior: Tally | None = None
    expectation: Expectation | None = None
    speed: float | None = None

    def adapter(self, spec: JoinSpec) -> Adapter:
        """What chooses configurations, with what the pilot learned."""
        kinds: dict[str, type[Adapter]] = {"grubjoin": HarvestAdapter, "dual": DualAdapter}
        kind = kinds.get(self.strategy, DropAdapter)
        adapter = kind(self.configuration, spec.slices, self.graph, self.policy)
        if isinstance(adapter, DualAdapter):
            adapter.knows(spec)
        adapter.learned = None if self.prior is None else self.prior.copy()
        return adapter


def policy_of(hint: ShedHint) -> Policy:
    """The options of a hint that say how to adapt."""
    chooser, metric = hint.harvest
    return Policy(
        chooser=chooser,
        metric=metric or "best_delta",
        per_stream=hint.per_stream,
        shred=hint.shred,
        fixed=hint.orders is not None,
        adapt=hint.adapt / 1_000_000,
    )


def pilot_cuts(master: StreamStatistics) -> tuple[int, ...]:
    """Times that cut a stream into stretches to look at, between others that are left alone.

    The stretches are the segments with odd numbers; without cuts everything is looked at::

        times   |------|==|------|==|------|==|------|==|------|
        segment    0    1    2    3    4    5    6    7    8
    """
    wanted = min(MOST_ROWS, max(FEWEST_ROWS, PILOT_SHARE * master.rows)) / max(1, master.rows)
    if len(master.quantiles) < 2 or master.first == master.last or wanted > 0.5:
        return ()
    cuts = []
    for number in range(STRETCHES):
        middle = (2 * number + 1) / (2 * STRETCHES)
        half = wanted / STRETCHES / 2
        cuts += [master.time_at(middle - half), master.time_at(middle + half)]
    return tuple(sorted(set(cuts))) if len(set(cuts)) == 2 * STRETCHES else ()


def expectation(
    shedding: Shedding, spec: JoinSpec, tally: Tally, master: int, rows: int
) -> Expectation | None:
    """What is expected of a configuration when all results come from the master; None if nothing is known.

    Args:
        shedding: The configuration.
        spec: What is joined.
        tally: What the pilot met.
        master: Number of the master stream.
        rows: Rows of it.
    """
    configuration, policy = shedding.configuration, shedding.policy
    learned = learned_model(tally, configuration.orders, spec.slices, per_stream=policy.per_stream)
    pilot = tally.directions[master]
    if learned is None or not pilot.rows:
        return None
    model = learned.model.directions[master]
    full = model.cost(model.full_setting)
    if shedding.strategy == "grubjoin":
        work, found = _harvested(configuration, learned, master)
        work, found = (
            (1 - configuration.shred) * share + configuration.shred * configuration.throttle
            for share in (work, found)
        )
    else:
        work, found = _kept(configuration, model, master), math.prod(configuration.keep)
    spent = pilot.work / (full / model.rate * rows) if full and rows else 0.0
    return Expectation(work, found, round(pilot.rows), spent)


def _harvested(configuration: Configuration, learned: Learned, master: int) -> tuple[float, float]:
    """The shares of work and of results of rows that harvest."""
    model = learned.model.directions[master]
    work = found = 0.0
    for harvest, share in (
        (configuration.dear[master], configuration.mix),
        (configuration.cheap[master], 1 - configuration.mix),
    ):
        setting = learned.places(master, harvest)
        full_work, full_found = model.cost(model.full_setting), model.output(model.full_setting)
        work += share * (model.cost(setting) / full_work if full_work else 1.0)
        found += share * (model.output(setting) / full_found if full_found else 1.0)
    return work, found


def _kept(configuration: Configuration, model: DirectionModel, master: int) -> float:
    """The share of work that is left when only some rows of each stream are kept."""
    keep = configuration.keep
    full = dropped = 0.0
    entering, left = 1.0, keep[master]
    for target, hop in zip(configuration.orders[master], model.hops, strict=True):
        full += entering * (hop.base + sum(hop.cost))
        dropped += entering * left * hop.base
        left *= keep[target]
        dropped += entering * left * sum(hop.cost)
        entering *= sum(hop.partials)
    return dropped / full if full else 1.0
