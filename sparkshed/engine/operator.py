"""The join operator: one micro-batch in, its results out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product

import numpy as np
import pyarrow as pa

from sparkshed.engine.holding import Holder
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.pipeline import DirectionExec
from sparkshed.engine.strategies.protocol import Batch, Held, Part, Strategy
from sparkshed.engine.windows import Windows
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.physical import JoinSpec


class JoinOperator(Holder):
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
        super().__init__(spec, strategy, seed)
        self._directions: dict[tuple[int, int, tuple[int, ...]], DirectionExec] = {}
        for number, join in enumerate(spec.joins):
            for origin, order in enumerate(join.orders):
                self._direction(number, origin, order)
        self.completeness = Completeness(0.0)
        self.newest: list[tuple[int, int]] = [(0, 0) for _ in spec.streams]

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
        self._absorb(new)
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


def joined_ranges(rows: tuple[int, int], more: tuple[int, int]) -> tuple[int, int]:
    """A range of rows with those that came after them."""
    (start, stop), (first, last) = rows, more
    if start == stop or first == last:
        return more if start == stop else rows
    return start, last
