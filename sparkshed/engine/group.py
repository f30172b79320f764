"""One group of a batch join: all rows are there, and those of the master stream come last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.pieces import Pieces
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.limited import Limited
from sparkshed.engine.strategies.registry import LIMITED, STRATEGIES
from sparkshed.engine.timing import in_order
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.shedding import Shedding

#: Rows between two adaptations, at least, and the number of adaptations, at most.
_LEAST_ROWS = 256
STEPS = 16
#: The share of its results that a pilot row looks for at least, however small the budget.
_LEAST_SEEN = 0.01

#: Rows of a micro-batch, at most, whose results wait for each other.
_TOGETHER = 1024


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
    if strategy.holds:
        yield from _join_in_order(spec, operator, streams, shedding)
        return
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


def _join_in_order(
    spec: JoinSpec, operator: JoinOperator, streams: Mapping[int, pa.Table], shedding: Shedding
) -> Iterator[pa.RecordBatch]:
    """The results when rows of all streams arrive in the order of time, as they would in streaming."""
    adapter = shedding.adapter(spec) if shedding.budget < 1 else None
    for portion in together(spec, streams):
        yield from operator.process(portion)
        operator.tidy()
        if adapter is not None:
            operator.strategy.configure(adapter.adapt(operator.strategy.take(), shedding.budget))
    yield from operator.close()


def together(spec: JoinSpec, rows: Mapping[int, pa.Table]) -> Iterator[dict[int, pa.Table]]:
    """Rows in the order of time, so few at a time that their results may wait for each other."""
    return portions(spec, rows, -(-sum(table.num_rows for table in rows.values()) // _TOGETHER))


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
    generator, per_stream = np.random.default_rng(seed), shedding.policy.per_stream
    if shedding.buffering is not None:
        limited = LIMITED.get(shedding.strategy, Limited)
        return limited(configuration, shedding.buffering, generator, per_stream=per_stream)
    kind = STRATEGIES[shedding.strategy]
    return kind(configuration, generator, per_stream=per_stream)


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
