"""A join under load on a virtual clock.

Streams fill input buffers; a CPU of so many work units per second takes what is in them, batch by
batch. Rows that find their buffer full are lost. Nothing depends on the machine: work is counted, and the
clock moves by work / capacity.

    stream 1 ──▶ [buffer] ─┐
    stream 2 ──▶ [buffer] ─┼──▶ join operator ──▶ results
    stream 3 ──▶ [buffer] ─┘      ▲    │ work, tally
                                  └────┘ every Δ: throttle, orders, harvest

Without a capacity the CPU is never busy and nothing is lost: that is how a budget is given and not found,
and how the exact join runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.statistics import Statistics
from sparkshed.engine.strategies.protocol import Strategy
from sparkshed.experiments.feeds import SECOND, Feed
from sparkshed.experiments.joins import Join
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.throttle import Throttle


@dataclass(frozen=True, slots=True)
class Load:
    """The circumstances of a run.

    Attributes:
        capacity: Work units per second; infinite if the CPU is never short.
        buffer: Rows that the input buffer of a stream holds.
        adapt: Δ, seconds between adaptations.
        boost: γ of the throttle.
        seconds: Length of the run.
        warm_up: Seconds at the start that do not count.
        tick: Seconds of input that a batch holds at most.
        comparison: Work units of one comparison. Results cost one unit each in any case.
        measured: Tell the throttle how busy the CPU was, and not only whether the join kept up.
        reset: Seconds after which the throttle is opened again, z = 1; none by default.
    """

    capacity: float = inf
    buffer: int = 10
    adapt: float = 5.0
    boost: float = 1.2
    seconds: float = 60.0
    warm_up: float = 20.0
    tick: float = 0.02
    comparison: float = 1.0
    measured: bool = True
    reset: float = inf

    def work(self, statistics: Statistics) -> float:
        """Work units of what was counted."""
        return statistics.work + (self.comparison - 1) * statistics.comparisons


@dataclass(slots=True)
class Step:
    """One adaptation interval: when it ended, what happened in it, and what was decided.

    Attributes:
        at: Seconds from the start.
        throttle: z of the next interval.
        beta: β, rows consumed / rows arrived.
        busy: The share of the interval in which the CPU worked.
        effort: Work units that the decision itself cost.
        held: Rows that the windows hold at the end.
    """

    at: float
    throttle: float = 1.0
    beta: float = 1.0
    busy: float = 0.0
    arrived: int = 0
    consumed: int = 0
    lost: int = 0
    work: float = 0.0
    effort: float = 0.0
    results: int = 0
    held: int = 0
    completeness: Completeness = Completeness()
    configuration: Configuration | None = None


@dataclass(slots=True)
class Outcome:
    """What a run did after its warm-up.

    `work` holds the effort of the decisions, too; `statistics` are the operator's counters.
    """

    seconds: float
    results: int = 0
    work: float = 0.0
    arrived: int = 0
    lost: int = 0
    steps: list[Step] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def output_rate(self) -> float:
        """Results per second."""
        return self.results / self.seconds

    @property
    def work_rate(self) -> float:
        """Work units per second."""
        return self.work / self.seconds

    @property
    def loss(self) -> float:
        """The share of rows that found their buffer full."""
        return self.lost / self.arrived if self.arrived else 0.0


Adapt = Callable[[Tally, float], Configuration]


class Throttling(Protocol):
    """What finds z."""

    beta: float

    def update(self, consumed: float, arrived: float, busy: float | None = None) -> float:
        """The new z, after so many rows were consumed and so many arrived."""


class Forced:
    """Not a throttle: the shares are given, one for each interval after the first; the last one stays."""

    def __init__(self, shares: Iterable[float]) -> None:
        """Give one share at least."""
        *self._shares, self._last = shares
        self._turn = 0
        self.beta = 1.0

    def update(self, consumed: float, arrived: float, busy: float | None = None) -> float:
        """The next share."""
        self._turn += 1
        return self._shares[self._turn - 1] if self._turn <= len(self._shares) else self._last


def simulate(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    strategy: Strategy,
    adapt: Adapt | None = None,
    *,
    throttle: Throttling | None = None,
    effort: Callable[[], float] = lambda: 0.0,
    watch: Callable[[Step], None] = lambda step: None,
) -> Outcome:
    """Run a strategy over streams.

    Args:
        join: What is joined.
        tables: The rows of each stream, in the order of their times.
        load: The circumstances.
        strategy: What is shed.
        adapt: Gives the next configuration, from what an interval taught and the throttle. Without it the
            configuration stays.
        throttle: What finds z; the paper's throttle by default.
        effort: Work units that the last call of `adapt` cost.
        watch: Is told about each interval.
    """
    return _Run(join, tables, load, strategy, adapt, throttle or Throttle(load.boost), effort).run(watch)


class _Run:
    """One run, and its clock."""

    def __init__(
        self,
        join: Join,
        tables: Sequence[pa.Table],
        load: Load,
        strategy: Strategy,
        adapt: Adapt | None,
        throttle: Throttling,
        effort: Callable[[], float],
    ) -> None:
        self._load = load
        self._strategy = strategy
        self._adapt = adapt
        self._throttle = throttle
        self._effort = effort
        self._operator = JoinOperator(join.spec, strategy)
        self._feeds = [Feed(table, load.buffer) for table in tables]
        self._start = min((float(feed.times[0]) for feed in self._feeds if len(feed.times)), default=0.0)
        # The CPU is free from `_free` on, and looks into the buffers at `_now`.
        self._now = self._free = self._start
        self._outcome = Outcome(load.seconds - load.warm_up)
        self._warm: Statistics | None = None
        self._step = Step(0.0)
        self._began = self._start
        self._busy = 0.0
        self._reset = self._start + load.reset

    def run(self, watch: Callable[[Step], None]) -> Outcome:
        """Until the end."""
        load, end = self._load, self._start + self._load.seconds
        due = self._start + load.adapt
        while self._now < end:
            if self._warm is None and self._now >= self._start + load.warm_up:
                self._warm = deepcopy(self._operator.statistics)
            self._arrive()
            self._process()
            if self._now >= due:
                self._arrive()
                self._decide()
                watch(self._step)
                self._outcome.steps.append(self._step)
                self._step, self._began = Step(0.0), self._now
                while due <= self._now:
                    due += load.adapt
        counted = self._operator.statistics
        self._outcome.statistics = deepcopy(counted) if self._warm is None else counted.since(self._warm)
        return self._outcome

    def _arrive(self) -> None:
        for feed in self._feeds:
            waited, lost = feed.arrive(self._free, limited=True)
            taken, _ = feed.arrive(self._now, limited=False)
            self._count(arrived=waited + taken, lost=lost)

    def _count(self, **amounts: float) -> None:
        """Add to the interval, and to the outcome once the run is warm."""
        for counts in (self._step, self._outcome) if self._warm is not None else (self._step,):
            for name, amount in amounts.items():
                setattr(counts, name, getattr(counts, name) + amount)

    def _process(self) -> None:
        """Join the oldest rows that wait, and let the clock run on."""
        oldest = min(feed.oldest for feed in self._feeds)
        taken = [feed.take(oldest + self._load.tick) for feed in self._feeds]
        batch = {number: table for number, table in enumerate(taken) if table is not None}
        spent = 0.0
        if batch:
            before = self._load.work(self._operator.statistics)
            found = sum(chunk.num_rows for chunk in self._operator.process(batch))
            spent = self._load.work(self._operator.statistics) - before
            self._step.consumed += sum(table.num_rows for table in batch.values())
            self._count(results=found, work=spent)
            self._step.completeness += self._operator.completeness
        waiting = min(feed.oldest for feed in self._feeds)
        self._operator.expire(int(min(waiting, self._now) * SECOND) - 1)
        self._work(spent)
        # With nothing left to do, the CPU waits for a few rows to come.
        self._now = self._free if waiting < inf else max(self._free, self._now + self._load.tick)

    def _work(self, units: float) -> None:
        """The CPU is busy for a while."""
        self._free = self._now + units / self._load.capacity
        self._busy += self._free - self._now

    def _decide(self) -> None:
        step = self._step
        step.at, step.busy = self._now - self._start, min(1.0, self._busy / (self._now - self._began))
        self._busy = 0.0
        if self._now >= self._reset:
            self._throttle, self._reset = Throttle(self._load.boost), inf
            step.throttle = self._throttle.z
        else:
            busy = step.busy if self._load.measured else None
            step.throttle = self._throttle.update(step.consumed, step.arrived, busy)
        step.beta = self._throttle.beta
        tally = self._strategy.take()
        if self._adapt is not None:
            self._strategy.configure(self._adapt(tally, step.throttle))
            step.effort = self._effort()
            # Rows that come now wait for the end of the decision.
            self._work(step.effort)
            self._now = self._free
            if self._warm is not None:
                self._outcome.work += step.effort
        step.configuration = self._strategy.configuration
        step.throttle = step.configuration.throttle
        step.held = self._operator.window_rows
