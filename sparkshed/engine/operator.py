"""The join operator: one micro-batch in, its results out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.codes import Codebook
from sparkshed.engine.lazy import LazyWindows, Unread
from sparkshed.engine.needs import compared_words, conditions, used_columns
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.pipeline import DirectionExec
from sparkshed.engine.statistics import DirectionCounters, HopCounters, Statistics, StreamCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.exact import Exact
from sparkshed.engine.strategies.protocol import Batch, Held, Part, Strategy
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.block import JOIN

#: The codebook is rebuilt when it has this many times more entries than there are rows.
_STALE = 4
_SMALL_CODEBOOK = 1 << 16


class JoinOperator:
    """A multi-way windowed join over micro-batches, exact and exactly once.

    All rows have one arrival order: micro-batch, event time, stream, position. A result is produced
    by its last-arriving member. New rows are therefore kept apart from old ones while they probe::

                         old rows of S_l (earlier batches)   new rows of S_l (this batch)
        new row of S_i   the whole time range                only up to its own time
                         ── both sides in time ──            (equal times: only if l < i)

    and then join the windows. However the input is cut into micro-batches, and in whatever order
    rows arrive, the results are the same.
    """

    def __init__(self, spec: JoinSpec, strategy: Strategy | None = None, seed: int = 0) -> None:
        """Plan nothing, only bind: the specification is complete.

        Args:
            spec: What is joined, and how.
            strategy: What is shed; nothing by default.
            seed: Of the samples that windows are thinned to.
        """
        self._spec = spec
        evaluated = list(conditions(spec))
        self._codebook = Codebook(evaluated)
        self._texts = sorted({(c.stream, c.column) for e in evaluated for c in compared_words(e)})
        used = used_columns(spec)
        self._stores = [RowStore(s, used[i], self._codebook) for i, s in enumerate(spec.streams)]
        self._windows = [LazyWindows(spec.basic, seed + i) for i, _ in enumerate(spec.streams)]
        hops = len(spec.streams) - 1
        self.statistics = Statistics(
            [StreamCounters() for _ in spec.streams],
            [DirectionCounters([HopCounters() for _ in range(hops)]) for _ in spec.streams],
        )
        self._directions: dict[tuple[int, int, tuple[int, ...]], DirectionExec] = {}
        for number, join in enumerate(spec.joins):
            for origin, order in enumerate(join.orders):
                self._direction(number, origin, order)
        self.strategy: Strategy = Exact(Configuration(spec.orders)) if strategy is None else strategy
        self.strategy.bind(spec, self._stores)
        self.completeness = Completeness(0.0)
        self._running = False
        self.newest: list[tuple[int, int]] = [(0, 0) for _ in spec.streams]
        # Windows that lost rows, by stream, for whoever writes them down.
        self.thinner: list[set[int]] = [set() for _ in spec.streams]
        self.reader: Callable[[Any], pa.Table] | None = None

    def _direction(self, number: int, origin: int, order: tuple[int, ...]) -> DirectionExec:
        """A direction of a join in some order, bound when it is first needed."""
        known = self._directions.get((number, origin, order))
        if known is None:
            join, counters = self._spec.joins[number], self.statistics.directions[origin]
            known = self._directions[number, origin, order] = DirectionExec(
                join, join.direction(origin, order), self._stores, counters
            )
        return known

    def process(self, batch: Mapping[int, pa.Table | pa.RecordBatch | None]) -> Iterator[pa.RecordBatch]:
        """Join one micro-batch: stream number → new rows, columns by position.

        Rows are taken in at once; results come in chunks of at most `spec.chunk` rows. The iterator
        must be exhausted before the next batch, because only then the new rows enter the windows.

        Args:
            batch: New rows by stream number; a missing stream or None has none.

        Returns:
            Record batches with the columns of `spec.output` and, of several joins, the number of the join.
            Without any column each has one of zeros, `__row`, that only carries the number of rows.

        Raises:
            NullTimeError: A row without a time reached a stream with `strict_time`.
            EvaluationError: An expression failed on a candidate (while iterating). The operator cannot be
                used after that: part of the batch's results are lost.
        """
        self._refuse_while_running()
        unknown = [i for i in batch if not 0 <= i < len(self._stores)]
        if unknown:
            msg = f"stream numbers must be 0 … {len(self._stores) - 1}, got {unknown}"
            raise ValueError(msg)
        self.strategy.arriving(batch)
        self.completeness = Completeness(0.0)
        self.newest = [(0, 0) for _ in self._stores]
        first, *rest = self._arranged(batch)
        results = self._step(first)
        return chain(results, self._steps(rest)) if rest else results

    def close(self) -> Iterator[pa.RecordBatch]:
        """Join what still waits in front of the join, because no more rows will come."""
        self.strategy.close()
        return self.process({})

    def _steps(self, batches: Sequence[Batch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self._step(batch)

    def _step(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        new = [windows.empty() for windows in self._windows]
        ranges = [self._take_in(i, batch.get(i), windows) for i, windows in enumerate(new)]
        self.newest = [joined_ranges(*pair) for pair in zip(self.newest, ranges, strict=True)]
        filled = [old.held + fresh.size > 0 for old, fresh in zip(self._windows, new, strict=True)]
        if all(filled):
            self._read_reached(ranges)
            self._running = True
            return self._join(ranges, new)
        for _ in self.strategy.release(()):
            pass
        self._settle(new)
        return iter(())

    @property
    def window_rows(self) -> int:
        """Rows that all windows hold."""
        return sum(windows.held for windows in self._windows)

    def held(self, stream: int) -> tuple[RowStore, LazyWindows]:
        """The rows of a stream and its windows, to be written down."""
        return self._stores[stream], self._windows[stream]

    def leave(self, stream: int, number: int, part: Unread) -> None:
        """Note rows that were written down, to be read by `reader` when their window is needed."""
        self._refuse_while_running()
        self._windows[stream].leave(number, part)

    def drop(self, windows: Iterable[tuple[int, int]]) -> None:
        """Forget windows, by stream and number; nothing is counted."""
        self._refuse_while_running()
        for stream, number in windows:
            self._windows[stream].drop(number)
        for stream, _ in enumerate(self._windows):
            self._compact(stream)

    def read(self, stream: int, number: int) -> None:
        """Read what is missing of a window; nothing is joined or counted."""

        def fetch(place: Any) -> BasicWindow:
            assert self.reader is not None
            start, times = self._stores[stream].restore(self.reader(place))
            return BasicWindow(np.arange(start, start + len(times)), times)

        self._refuse_while_running()
        self._windows[stream].read(number, fetch)

    def notes(self) -> bytes | None:
        """What the strategy must not forget, beside the rows."""
        return self.strategy.notes([windows.rows for windows in self._windows])

    def recall(self, notes: bytes) -> None:
        """Read all rows that were written down, and remind the strategy of what it knew of them."""
        for stream, windows in enumerate(self._windows):
            for number in sorted(windows.numbers):
                self.read(stream, number)
        self.strategy.recall(notes, [windows.rows for windows in self._windows])

    def _read_reached(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Read the windows that new rows may probe: before the join, because it needs all words at once."""
        for origin, (start, stop) in enumerate(ranges):
            if start == stop:
                continue
            times = self._stores[origin].times[start:stop]
            for target, reaches in self.strategy.reaches(origin).items():
                for reach, join in product(reaches, self._spec.joins):
                    bounded = reach.bounded(join.bounds[origin][target], join.bounds[target][origin])
                    for number in self._windows[target].reached(times, bounded):
                        self.read(target, number)

    def _refuse_while_running(self) -> None:
        if self._running:
            msg = "the results of the previous micro-batch must be read to the end first"
            raise RuntimeError(msg)

    def _arranged(self, batch: Mapping[int, pa.Table | pa.RecordBatch | None]) -> Sequence[Batch]:
        """The rows that are joined now; those that are shed are counted."""
        rows = {}
        for stream, table in batch.items():
            if table is None or table.num_rows == 0:
                continue
            counters = self.statistics.streams[stream]
            counters.arrived += table.num_rows
            admitted = self.strategy.admit(stream, table.num_rows)
            if admitted is not None:
                table = table.filter(pa.array(admitted))
                counters.shed += len(admitted) - table.num_rows
            rows[stream] = table
        arranged = self.strategy.arrange(rows)
        for counters, dropped in zip(self.statistics.streams, arranged.dropped, strict=False):
            counters.shed += dropped
        return arranged.batches

    def _take_in(self, stream: int, table: pa.Table | None, windows: Windows) -> tuple[int, int]:
        if table is None or table.num_rows == 0:
            return 0, 0
        store, counters = self._stores[stream], self.statistics.streams[stream]
        start, times = store.append(table)
        counters.null_time = store.null_time
        windows.add(start, times)
        self.strategy.entered(stream, np.arange(start, start + len(times)))
        return start, start + len(times)

    def _join(self, ranges: Sequence[tuple[int, int]], new: Sequence[Windows]) -> Iterator[pa.RecordBatch]:
        # All words must be known before one is compared: their ranks depend on each other.
        for stream, column in self._texts:
            self._stores[stream].values(column)
        held: list[Held] = []
        for origin, (start, stop) in enumerate(ranges):
            if start == stop:
                continue
            before = self.statistics.directions[origin].work
            for part in self.strategy.parts(origin, np.arange(start, stop)):
                for join, results in self._join_part(origin, part, new):
                    if self.strategy.holds:
                        held.append(Held(join, origin, results.joined()))
                    else:
                        yield self._materialise(join, results)
            self.strategy.spent(origin, self.statistics.directions[origin].work - before)
        for released in self.strategy.release(held):
            yield self._materialise(released.join, released.results)
        self._settle(new)
        self._running = False

    def _join_part(
        self, origin: int, part: Part, new: Sequence[Windows]
    ) -> Iterator[tuple[int, Partials | Candidates]]:
        """The results of each join, by its number."""
        if part.only is not None:
            self._direction(0, origin, (part.only,)).explore(part.rows, self._windows, new, part.probing)
            return
        # Strategies that choose orders have one join.
        orders = (self.strategy.configuration.orders, *(join.orders for join in self._spec.beside))
        for number, order in enumerate(own[origin] for own in orders):
            direction = self._direction(number, origin, order)
            for results in direction.run(part.rows, self._windows, new, part.probing):
                if part.observe is not None:
                    part.observe(results)
                yield number, results

    def _settle(self, new: Sequence[Windows]) -> None:
        for old, fresh in zip(self._windows, new, strict=True):
            if fresh.size:
                old.absorb(fresh)
        for stream, leaving in enumerate(self.strategy.leaving()):
            for rows in leaving:
                if len(rows):
                    times = self._stores[stream].times.take(rows)
                    self._windows[stream].remove(rows, times)
                    self.thinner[stream].update(self._windows[stream].numbers_of(times).tolist())
            self.statistics.streams[stream].evicted += len(leaving.evicted)
            self.statistics.streams[stream].expired += len(leaving.past)
        for direction, units in zip(self.statistics.directions, self.strategy.charges(), strict=False):
            direction.charges += units
        self.completeness += self.strategy.settle()

    def _materialise(self, join: int, results: Partials | Candidates) -> pa.RecordBatch:
        """Gather the payload: the only place where results become rows."""
        output = self._spec.output
        arrays, names = [results.payload(o.stream, o.column) for o in output], [o.name for o in output]
        if self._spec.beside:
            arrays.append(pa.array(np.full(results.size, join, np.int32)))
            names.append(JOIN)
        if not arrays:
            return pa.RecordBatch.from_arrays([pa.array(np.zeros(results.size, np.int8))], ["__row"])
        return pa.RecordBatch.from_arrays(arrays, names)

    def expire(self, watermark_us: int) -> int:
        """Drop whole basic windows that no row with `time >= watermark_us` can match.

        Where the strategy's configuration has a horizon, windows beyond it are thinned out, too.

        Args:
            watermark_us: Earliest time of any row still to come, in microseconds.

        Returns:
            How many rows were dropped.
        """
        self._refuse_while_running()
        dropped = 0
        for k, windows in enumerate(self._windows):
            retention = self._spec.retentions[k]
            if retention is None:
                continue
            former = windows.rows
            rows = windows.expire(watermark_us - retention)
            self.strategy.expired(k, former[:rows])
            self.statistics.streams[k].expired += rows
            dropped += rows + self._evict(k, watermark_us)
        self.tidy()
        return dropped

    def tidy(self) -> None:
        """Free the memory of rows that are in no window, where they are the majority."""
        for stream, _ in enumerate(self._windows):
            self._compact(stream)
        self._prune_codebook()

    def _compact(self, stream: int) -> None:
        """Let go of the rows that no window holds, once they are the majority."""
        windows, store = self._windows[stream], self._stores[stream]
        if store.size > 2 * windows.loaded:
            former = windows.renumber()
            store.compact(former)
            self.strategy.renumbered(stream, former)

    def _evict(self, stream: int, watermark_us: int) -> int:
        """Thin out what no harvest reaches; returns how many rows were dropped."""
        configuration = self.strategy.configuration
        horizon = configuration.horizons[stream]
        if horizon is None or configuration.reserve >= 1:
            return 0
        windows, before = self._windows[stream], watermark_us - horizon
        for number in windows.unthinned(before):
            self.read(stream, number)
        kept, gone = windows.thin_out(before, configuration.reserve)
        self._stores[stream].weigh(kept, 1 / configuration.reserve)
        self.statistics.streams[stream].evicted += gone
        return gone

    def _prune_codebook(self) -> None:
        live = sum(windows.loaded for windows in self._windows)
        if len(self._codebook) > max(_SMALL_CODEBOOK, _STALE * live):
            self._codebook.clear()
            for windows, store in zip(self._windows, self._stores, strict=True):
                windows.forget()
                store.forget()


def joined_ranges(rows: tuple[int, int], more: tuple[int, int]) -> tuple[int, int]:
    """A range of rows with those that came after them."""
    (start, stop), (first, last) = rows, more
    if start == stop or first == last:
        return more if start == stop else rows
    return start, last
