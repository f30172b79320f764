"""One group of a batch join: all rows are there, and those of the master stream come last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints
from sparkshed.engine.decode import decode_times, normalise, validity
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.pieces import Pieces
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.randomdrop import RandomDrop
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec, StreamExec
from sparkshed.planner.shedding import Shedding

#: Rows between two adaptations, at least, and the number of adaptations, at most.
_LEAST_ROWS = 256
STEPS = 16
_NEVER = 2**63 - 1
#: The share of its results that a pilot row looks for at least, however small the budget.
_LEAST_SEEN = 0.01

STRATEGIES: dict[str, type[Learning]] = {"grubjoin": GrubJoin, "randomdrop": RandomDrop}


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
    adapter.promise(shedding.budget)
    ordered, _ = in_order(rows, spec.streams[master])
    pieces = Pieces(rows.num_rows)
    for begin, end in pieces:
        yield from operator.process({master: ordered.slice(begin, end - begin)})
        if pieces.is_due(spent=strategy.tally.directions[master].work >= adapter.planned):
            following, share = pieces.adapt()
            counts = [following if stream == master else 0 for stream, _ in enumerate(spec.streams)]
            strategy.configure(adapter.adapt(strategy.take(), shedding.budget, rows=counts, share=share))


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
        ordered[stream], times[stream] = in_order(table, spec.streams[stream])
    merged = np.sort(np.concatenate(list(times.values())))
    ends = [int(merged[step * total // steps]) for step in range(1, steps)]
    begin = dict.fromkeys(rows, 0)
    for end in [*dict.fromkeys(ends), None]:
        stop = {s: len(own) if end is None else int(own.searchsorted(end)) for s, own in times.items()}
        yield {s: ordered[s].slice(begin[s], stop[s] - begin[s]) for s in rows}
        begin = stop


def in_order(table: pa.Table, stream: StreamExec) -> tuple[pa.Table, Ints]:
    """The rows of a stream in the order of time, and their times."""
    known = times_of(table, stream)
    order = known.argsort(kind="stable")
    return table.take(pa.array(order)), known.take(order)


def times_of(table: pa.Table, stream: StreamExec) -> Ints:
    """The time of each row in microseconds; rows without one come last."""
    column = normalise(table.column(stream.time).combine_chunks(), stream.types[stream.time])
    known = validity(column)
    if known is None:
        return decode_times(column, stream.types[stream.time])
    times = np.full(len(column), _NEVER)
    times[known] = decode_times(column.drop_null(), stream.types[stream.time])
    return times
