"""A join under load on a virtual clock.

Streams fill input buffers; a CPU of so many work units per second takes what is in them, batch by
batch. Rows that find their buffer full are lost. Nothing depends on the machine: work is counted, and the
clock moves by work / capacity.

    stream 1 ──▶ [buffer] ─┐
    stream 2 ──▶ [buffer] ─┼──▶ join operator ──▶ results
    stream 3 ──▶ [buffer] ─┘      ▲    │ work, tally
                                  └────┘ every Δ: throttle, orders, harvest
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sparkshed.engine import JoinOperator
from sparkshed.engine.strategies.protocol import Strategy
from sparkshed.experiments.joins import SECOND, Join
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.throttle import Throttle

#: The CPU looks into the buffers this often when it has nothing to do, in seconds.
TICK = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """The circumstances of a run.

    Attributes:
        capacity: Work units per second.
        buffer: Rows that the input buffer of a stream holds.
        adapt: Δ, seconds between adaptations.
        boost: γ of the throttle.
        seconds: Length of the run.
        warm_up: Seconds at the start that do not count.
    """

    capacity: float
    buffer: int = 10
    adapt: float = 5.0
    boost: float = 1.2
    seconds: float = 60.0
    warm_up: float = 20.0


@dataclass(slots=True)
class Step:
    """One adaptation interval: when it ended, and what happened in it."""

    at: float
    throttle: float
    beta: float
    arrived: int
    consumed: int
    lost: int
    work: int
    results: int
    completeness: Completeness
    configuration: Configuration


@dataclass(slots=True)
class Outcome:
    """What a run did after its warm-up."""

    seconds: float
    results: int = 0
    work: int = 0
    arrived: int = 0
    lost: int = 0
    steps: list[Step] = field(default_factory=list)

    @property
    def output_rate(self) -> float:
        """Results per second."""
        return self.results / self.seconds


Adapt = Callable[[Tally, float], Configuration]


class _Feed:
    """One stream: rows that are still to come, and a buffer of those that wait."""

    def __init__(self, table: pa.Table, size: int) -> None:
        self.table = table
        start = pa.compute.min(table.column("ts")).cast(pa.int64()).as_py() if table.num_rows else 0
        self.times = (table.column("ts").cast(pa.int64()).to_numpy() - start * 0) / SECOND
        self._size = size
        self._next = 0
        self._waiting: list[tuple[int, int]] = []
        self._held = 0

    def until(self, now: float, *, busy: bool) -> tuple[int, int]:
        """Let rows arrive; returns how many came and how many of these were lost.

        A CPU that is not busy takes rows as they come, so no buffer overflows.
        """
        end = int(self.times.searchsorted(now, "right"))
        came = end - self._next
        kept = min(came, self._size - self._held) if busy else came
        if kept > 0:
            self._waiting.append((self._next, self._next + kept))
            self._held += kept
        self._next = end
        return came, came - max(kept, 0)

    def take(self) -> pa.Table | None:
        """All rows that wait."""
        parts = [self.table.slice(begin, end - begin) for begin, end in self._waiting]
        self._waiting, self._held = [], 0
        return pa.concat_tables(parts) if parts else None


def simulate(
    join: Join,
    tables: Sequence[pa.Table],
    load: Load,
    strategy: Strategy,
    adapt: Adapt,
    watch: Callable[[Step], None] = lambda step: None,
) -> Outcome:
    """Run a strategy over streams.

    Args:
        join: What is joined.
        tables: The rows of each stream, in the order of their times.
        load: The circumstances.
        strategy: What is shed.
        adapt: Gives the next configuration, from what an interval taught and the throttle.
        watch: Is told about each interval.
    """
    operator = JoinOperator(join.spec, strategy)
    start = min(float(table.column("ts")[0].value) for table in tables if table.num_rows) / SECOND
    feeds = [_Feed(table, load.buffer) for table in tables]
    throttle = Throttle(load.boost)
    outcome = Outcome(load.seconds - load.warm_up)
    now, free, due = start, start, start + load.adapt
    arrived = consumed = lost = 0
    work = results = 0
    completeness = Completeness()
    while now < start + load.seconds:
        came = [feed.until(free, busy=True) for feed in feeds]
        came += [feed.until(now, busy=False) for feed in feeds]
        arrived += sum(count for count, _ in came)
        lost += sum(count for _, count in came)
        batch = {number: table for number, feed in enumerate(feeds) if (table := feed.take()) is not None}
        if batch:
            before = operator.statistics.work
            found = sum(chunk.num_rows for chunk in operator.process(batch))
            spent = operator.statistics.work - before
            consumed += sum(table.num_rows for table in batch.values())
            work, results = work + spent, results + found
            completeness += operator.completeness
            if now >= start + load.warm_up:
                outcome.results += found
                outcome.work += spent
                outcome.arrived += sum(count for count, _ in came)
                outcome.lost += sum(count for _, count in came)
            operator.expire(int(now * SECOND) - 1)
            free = now + spent / load.capacity
        now = max(free, now + TICK)
        if now >= due:
            z = throttle.update(consumed, arrived)
            configuration = adapt(strategy.take(), z)
            strategy.configure(configuration)
            step = Step(
                at=now - start,
                throttle=z,
                beta=throttle.beta,
                arrived=arrived,
                consumed=consumed,
                lost=lost,
                work=work,
                results=results,
                completeness=completeness,
                configuration=configuration,
            )
            outcome.steps.append(step)
            watch(step)
            arrived = consumed = lost = work = results = 0
            completeness = Completeness()
            due += load.adapt
    return outcome
