"""One group of a batch join: all rows are there, and those of the master stream come last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.dual import Dual
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.randomdrop import RandomDrop
from sparkshed.engine.timing import times_of as times_of
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.shedding import Shedding

#: Master rows between two adaptations, at least, and the number of adaptations, at most.
_LEAST_ROWS = 256
STEPS = 16
#: The same where all streams are in the order of time, and rows may wait in front of the join.
_MORE_STEPS = 64
#: The share of its results that a pilot row looks for at least, however small the budget.
_LEAST_SEEN = 0.01

STRATEGIES: dict[str, type[Learning]] = {"grubjoin": GrubJoin, "randomdrop": RandomDrop, "dual": Dual}


def join_group(
    spec: JoinSpec, master: int, streams: Mapping[int, pa.Table], shedding: Shedding | None, number: int
) -> Iterator[pa.RecordBatch]:
    """The results of one group.

    The master's rows come last, so each result is found from them, and no other direction has any work.
    A strategy that sheds takes them in portions, in the order of time, and adapts between these.

    Args:
        spec: What is joined, and how.
        master: Number of the master stream.
        streams: Rows by stream.
        shedding: What is shed; None for the exact join.
        number: Of the group, so that groups draw different random numbers.
    """
    if spec.rows is not None and shedding is not None:
        yield from in_order(spec, streams, shedding, number)
        return
    others = {stream: rows for stream, rows in streams.items() if stream != master}
    rows = streams[master]
    if shedding is None:
        operator = JoinOperator(spec)
        for batch in (others, {master: rows}):
            yield from operator.process(batch)
        return
    seed = (shedding.seed, number)
    strategy = strategy_of(shedding, shedding.configuration, seed)
    operator = JoinOperator(spec, strategy, derived(seed))
    adapter = shedding.adapter(spec)
    yield from operator.process(others)
    strategy.take()
    for portion in portions(spec, {master: rows}):
        yield from operator.process(portion)
        strategy.configure(adapter.adapt(strategy.take(), shedding.budget))


def in_order(
    spec: JoinSpec, streams: Mapping[int, pa.Table], shedding: Shedding, number: int
) -> Iterator[pa.RecordBatch]:
    """The results of a group whose windows are counted in rows: all streams in the order of time."""
    seed = (shedding.seed, number)
    strategy = strategy_of(shedding, shedding.configuration, seed)
    assert isinstance(strategy, Dual)
    operator = JoinOperator(spec, strategy, derived(seed))
    adapter = shedding.adapter(spec)
    for portion in portions(spec, streams, _MORE_STEPS):
        yield from operator.process(portion)
        operator.tidy()
        if shedding.budget < 1:
            strategy.configure(adapter.adapt(strategy.take(), shedding.budget))
    strategy.closing = True
    yield from operator.process({})


def pilot_group(
    spec: JoinSpec, master: int, streams: Mapping[int, pa.Table], shedding: Shedding, number: int
) -> Tally:
    """What the master's rows of one group teach: all of them are shredded, and nothing is emitted."""
    seed = (shedding.seed, number)
    # Rows that harvest nothing but are all shredded: they see a share of each window.
    off = (((),) * (len(streams) - 1),) * len(streams)
    seen = max(shedding.budget, _LEAST_SEEN)
    configuration = Configuration(shedding.configuration.orders, seen, off, off, shred=1.0)
    strategy = GrubJoin(configuration, np.random.default_rng(seed), per_stream=shedding.policy.per_stream)
    operator = JoinOperator(spec, strategy, derived(seed))
    for batch in ({s: rows for s, rows in streams.items() if s != master}, {master: streams[master]}):
        for _ in operator.process(batch):
            pass
    return strategy.take()


def strategy_of(shedding: Shedding, configuration: Configuration, seed: tuple[int, ...]) -> Learning:
    """The strategy of a plan."""
    kind = STRATEGIES[shedding.strategy]
    return kind(configuration, np.random.default_rng(seed), per_stream=shedding.policy.per_stream)


def derived(seed: tuple[int, ...]) -> int:
    """One number made of several."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def portions(
    spec: JoinSpec, rows: Mapping[int, pa.Table], most: int = STEPS
) -> Iterator[dict[int, pa.Table]]:
    """The rows of all streams in the order of time, in so many portions of about equal size at most."""
    total = sum(table.num_rows for table in rows.values())
    steps = min(most, total // _LEAST_ROWS)
    if steps <= 1:
        yield dict(rows)
        return
    ordered, times = {}, {}
    for stream, table in rows.items():
        own = spec.streams[stream]
        known = times_of(table, own)
        order = known.argsort(kind="stable")
        ordered[stream], times[stream] = table.take(pa.array(order)), known.take(order)
    merged = np.sort(np.concatenate(list(times.values())))
    ends = [int(merged[step * total // steps]) for step in range(1, steps)]
    begin = dict.fromkeys(rows, 0)
    for end in [*dict.fromkeys(ends), None]:
        stop = {s: len(own) if end is None else int(own.searchsorted(end)) for s, own in times.items()}
        yield {s: ordered[s].slice(begin[s], stop[s] - begin[s]) for s in rows}
        begin = stop
