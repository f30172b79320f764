"""One hop of a join that goes from host to host: this one has some segments of some windows.

rows to keep ──────────────┐
partial results ──▶ hop ──▶ windows ──▶ longer partial results, to the hosts of the next hop
                                        results, if it was the last hop
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints
from sparkshed.engine.holding import Holder
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.pipeline import HopExec
from sparkshed.engine.probing import Probing, Reach, Span
from sparkshed.engine.store import RowStore
from sparkshed.engine.windows import Windows
from sparkshed.planner.physical import JoinSpec


class Probe(NamedTuple):
    """Partial results that come to a host.

    Attributes:
        origin: The stream whose new rows started them.
        order: The order of that direction.
        hop: Number of the hop to be made.
        spans: The times of the target that this host answers for.
        rows: Rows of the origin as they came, before the first hop; then the columns of all joined streams.
    """

    origin: int
    order: tuple[int, ...]
    hop: int
    spans: tuple[Span, ...]
    rows: pa.Table

    @property
    def target(self) -> int:
        """The stream that is probed."""
        return self.order[self.hop]

    @property
    def joined(self) -> tuple[int, ...]:
        """The streams that have a row in each partial result."""
        return self.origin, *self.order[: self.hop]

    @property
    def is_last(self) -> bool:
        """Whether results come of it."""
        return self.hop == len(self.order) - 1


@dataclass(slots=True)
class _Bench:
    """A bound hop, and where the rows of partial results are while it is made."""

    hop: HopExec
    stores: list[RowStore]
    joined: tuple[int, ...]

    def lay(self, probe: Probe) -> Partials:
        """Take in partial results."""
        rows: dict[int, Ints] = {}
        for stream in self.joined:
            store = self.stores[stream]
            start = store.size
            if probe.hop == 0:
                store.append(probe.rows)
            else:
                store.restore(_columns_of(probe.rows, stream, store))
            rows[stream] = np.arange(start, store.size)
        return Partials(self.stores, rows)

    def clear(self) -> None:
        """Forget them."""
        for stream in self.joined:
            self.stores[stream].compact(np.empty(0, np.int64))


class HopOperator(Holder):
    """The windows of a host, and the hops that are made over them."""

    def __init__(self, spec: JoinSpec, seed: int = 0) -> None:
        """Bind nothing before it is needed."""
        super().__init__(spec, None, seed)
        self._benches: dict[tuple[int, tuple[int, ...]], _Bench] = {}
        self.newest: list[tuple[int, int]] = [(0, 0) for _ in spec.streams]
        #: Partial results that came to a hop and left it, by origin and target, in the last micro-batch.
        self.met: dict[tuple[int, int], list[int]] = {}

    def process(
        self, batch: Mapping[int, pa.Table], probes: Sequence[Probe]
    ) -> Iterator[tuple[Probe, Partials | Candidates]]:
        """Keep the new rows, and make a hop with each of the partial results.

        A row meets those new rows only that arrived before the row that started its partial result; see
        :class:`sparkshed.engine.operator.JoinOperator`.
        """
        self._refuse_while_running()
        self.met = {}
        new = [windows.empty() for windows in self._windows]
        for stream, table in batch.items():
            self.statistics.streams[stream].arrived += table.num_rows
        self.newest = [self._take_in(i, batch.get(i), windows) for i, windows in enumerate(new)]
        laid = [(probe, bench, bench.lay(probe)) for probe in probes for bench in (self._bench(probe),)]
        for probe, _, partials in laid:
            self._read_for(probe, partials)
        self._running = True
        self._learn_words(bench.stores for _, bench, _ in laid)
        for probe, bench, partials in laid:
            if partials.size:
                yield from self._run(probe, bench, partials, new)
        for bench in self._benches.values():
            bench.clear()
        self._absorb(new)
        self._running = False

    def _run(
        self, probe: Probe, bench: _Bench, partials: Partials, new: Sequence[Windows]
    ) -> Iterator[tuple[Probe, Partials | Candidates]]:
        counts = self.met.setdefault((probe.origin, probe.target), [0, 0])
        counts[0] += partials.size
        target, probing = probe.target, Probing({probe.hop: probe.spans})
        for found in bench.hop.run(self._chunks(partials), self._windows[target], new[target], probing):
            counts[1] += found.size
            if probe.is_last:
                self.statistics.directions[probe.origin].results += found.size
            yield probe, found

    def _chunks(self, partials: Partials) -> Iterator[Partials]:
        limit = self._spec.chunk
        for begin in range(0, partials.size, limit):
            yield partials.select(np.arange(begin, min(begin + limit, partials.size)))

    def _bench(self, probe: Probe) -> _Bench:
        key = probe.origin, probe.order[: probe.hop + 1]
        known = self._benches.get(key)
        if known is None:
            stores = list(self._stores)
            for stream in probe.joined:
                own = self._spec.streams[stream]
                stores[stream] = RowStore(own, self._stores[stream].kept, self._codebook)
            direction = self._spec.direction(probe.origin, probe.order)
            counters = self.statistics.directions[probe.origin].hops[probe.hop]
            hop = HopExec(self._spec, direction, probe.hop, stores, counters)
            known = self._benches[key] = _Bench(hop, stores, probe.joined)
        return known

    def _read_for(self, probe: Probe, partials: Partials) -> None:
        """Read the windows that partial results may probe, and that this host answers for."""
        times = np.unique(partials.times(probe.origin))
        bounds, target, basic = self._spec.bounds, probe.target, self._spec.basic
        reach = Reach(bounds[probe.origin][target], bounds[target][probe.origin])
        for number in self._windows[target].reached(times, reach):
            begin, end = number * basic, (number + 1) * basic
            if any(span.first < end and span.last >= begin for span in probe.spans):
                self.read(target, number)

    def _learn_words(self, benches: Iterable[list[RowStore]]) -> None:
        """All words must be known before one is compared: their ranks depend on each other."""
        for stores in (self._stores, *benches):
            for stream, column in self._texts:
                stores[stream].values(column)

    def snapshot(self, results: Partials | Candidates) -> pa.Table:
        """Partial results as they travel."""
        partials = results.joined()
        columns = {}
        for stream in partials.rows:
            for column in self._stores[stream].kept:
                columns[f"{stream}.{column}"] = partials.payload(stream, column)
        return pa.table(columns)

    def results(self, found: Partials | Candidates) -> pa.RecordBatch:
        """Results as they are put out."""
        return self._materialise(0, found)


def _columns_of(table: pa.Table, stream: int, store: RowStore) -> pa.Table:
    names = [f"{stream}.{column}" for column in store.kept]
    return table.select(names).rename_columns([str(column) for column in store.kept])
