"""What an operator holds between micro-batches: rows, their windows, and a strategy that judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.codes import Codebook
from sparkshed.engine.lazy import LazyWindows, Unread
from sparkshed.engine.needs import compared_words, conditions, used_columns
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.statistics import DirectionCounters, HopCounters, Statistics, StreamCounters
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.exact import Exact
from sparkshed.engine.strategies.protocol import Strategy
from sparkshed.engine.windows import BasicWindow, Windows
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.block import JOIN

#: The codebook is rebuilt when it has this many times more entries than there are rows.
_STALE = 4
_SMALL_CODEBOOK = 1 << 16


class Holder:
    """Rows of all streams in basic windows, in memory or still where they were written down."""

    def __init__(self, spec: JoinSpec, strategy: Strategy | None = None, seed: int = 0) -> None:
        """Hold nothing yet.

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
        self.strategy: Strategy = Exact(Configuration(spec.orders)) if strategy is None else strategy
        self.strategy.bind(spec, self._stores)
        self._running = False
        # Windows that lost rows, by stream, for whoever writes them down.
        self.thinner: list[set[int]] = [set() for _ in spec.streams]
        self.reader: Callable[[Any], pa.Table] | None = None

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

    def _take_in(self, stream: int, table: pa.Table | None, windows: Windows) -> tuple[int, int]:
        if table is None or table.num_rows == 0:
            return 0, 0
        store, counters = self._stores[stream], self.statistics.streams[stream]
        start, times = store.append(table)
        counters.null_time = store.null_time
        windows.add(start, times)
        self.strategy.entered(stream, np.arange(start, start + len(times)))
        return start, start + len(times)

    def _absorb(self, new: Sequence[Windows]) -> None:
        """New rows are old from now on."""
        for old, fresh in zip(self._windows, new, strict=True):
            if fresh.size:
                old.absorb(fresh)

    def _refuse_while_running(self) -> None:
        if self._running:
            msg = "the results of the previous micro-batch must be read to the end first"
            raise RuntimeError(msg)

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
