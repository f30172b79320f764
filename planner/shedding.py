"""What a physical plan sheds: the work it may spend, how that is spent, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass

from sparkshed.planner.adaptation import Adapter, Policy
from sparkshed.planner.buffering import POLICIES, Buffering
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.learning import Learned, learned_model
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.statistics import StreamStatistics
from sparkshed.planner.strategies import KINDS
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
    buffering: Buffering | None = None
    expectation: Expectation | None = None
    speed: float | None = None

    @property
    def adapts(self) -> bool:
        """Whether it limits the work, and not only the memory."""
        return self.strategy not in POLICIES

    def adapter(self, spec: JoinSpec) -> Adapter:
        """What chooses configurations, with what the pilot learned."""
        adapter = KINDS[self.strategy].adapter(self.configuration, spec.slices, self.graph, self.policy)
        adapter.knows(spec)
        adapter.learned = None if self.prior is None else self.prior.copy()
        return adapter

    def learned(self, spec: JoinSpec) -> Learned | None:
        """The model of what the pilot learned, in the orders of the configuration."""
        if self.prior is None:
            return None
        per_stream = self.policy.per_stream
        return learned_model(self.prior, self.configuration.orders, spec.slices, per_stream=per_stream)


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
        adaptations=hint.adaptations,
        prices=hint.memory is not None,
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
    expect = KINDS[shedding.strategy].expect
    if expect is None:
        return None
    work, found = expect(configuration, learned, master, spec.slices)
    spent = pilot.work / (full / model.rate * rows) if full and rows else 0.0
    return Expectation(work, found, round(pilot.rows), spent)
