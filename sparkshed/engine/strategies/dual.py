"""Dual windows: rows wait in front of the join until it is known whether a probe is worth its work."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Floats, Ints
from sparkshed.engine.aux_windows import AuxWindows
from sparkshed.engine.fronts import Keys, in_arrival_order, joined
from sparkshed.engine.histogram import Histogram
from sparkshed.engine.probing import EVERYTHING
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.protocol import Arranged, Batch, Held, Leaving, Part
from sparkshed.engine.timing import times_of
from sparkshed.engine.waiting import Figures, chances, counted
from sparkshed.engine.wire import from_blob, to_blob
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import BINS, PROBE, UPDATE, bins_of
from sparkshed.planner.physical import JoinSpec

#: Rows that are joined at once are a part of a window at most: more would meet rows that left it already.
_PART, _LEAST = 2, 256
#: What random numbers are for: dropping rows in front, by stream.
_FRONT = 0


class Dual(Learning):
    """Two streams, an equality, and windows of the last n rows of each stream.

    ::

              k_f dropped           wait, in the order of arrival        k_r do not probe
        a ────────┬────▶ [ aux window ]  ────────┬────▶ [ join window of a ]
                  │      yields N, by what       │             ╳
        b ────────┴────▶ [ aux window ]  ────────┴────▶ [ join window of b ]

    A row's place among all rows that came says whom it meets: its partner must be one of the last n rows of
    its stream when the later of both came, however long they wait. So N, the number of partners among
    those, is known when a row comes. When it is pushed out by later rows, it enters its join window, and
    probes unless too many of the rows behind it have a higher N. Without anything to shed no row waits.

    """

    holds = True

    def __init__(
        self,
        configuration: Configuration,
        generator: np.random.Generator,
        *,
        per_stream: bool = False,
        of_kept: bool = False,
    ) -> None:
        """Start with a configuration.

        Args:
            configuration: What to do first.
            generator: Gives the seed of all choices about single rows.
            per_stream: Of no use here.
            of_kept: Let windows hold the last n rows that were not dropped in front, as in the paper.
        """
        super().__init__(configuration, generator, per_stream=per_stream)
        self._seed = int(generator.integers(1 << 62))
        self._of_kept = of_kept
        self._closing = False

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""
        super().bind(spec, stores)
        if spec.rows is None or len(spec.streams) != 2:
            msg = "dual windows need two streams and a number of rows"
            raise ValueError(msg)
        self._rows = spec.rows
        self._keys = Keys(spec, stores)
        self._came, self._counted = [0, 0], [0, 0]
        self._waiting = AuxWindows(spec.rows)
        self._histograms: list[Histogram] = []
        self._arriving: list[tuple[Figures, Bools]] = []
        self._probing: list[Ints] = [np.empty(0, np.int64)] * 2
        self._first, self._limits = [0, 0], [0, 0]
        self._met = self._seen = 0.0
        self._begin()

    def _begin(self) -> None:
        """Count nothing yet of the next batch."""
        self._units = [0.0, 0.0]
        self._unseen = self._variance = self._largest = 0.0

    # In front of the join -----------------------------------------------------------------------

    def arrange(self, batch: Batch) -> Arranged:
        """Drop rows in front, let others wait, and give out those that waited long enough."""
        streams, tables, timeless = in_arrival_order(self._spec.streams, batch)
        ranks, _ = counted(streams, np.ones(len(streams), np.int64), self._came)
        let_in = np.ones(len(streams), bool)
        weights = np.ones(len(streams))
        for s, keep in enumerate(self.configuration.keep):
            own = streams == s
            self._came[s] += int(own.sum())
            self.tally.directions[s].rows += int(own.sum())
            if keep < 1:
                let_in[own] = self.lets_in(s, ranks[own], keep)
                weights[own] = 1 / keep
        if self._of_kept:
            weights[:] = 1.0
        counts = let_in if self._of_kept else np.ones(len(streams), bool)
        ranks, before = counted(streams, counts.astype(np.int64), self._counted)
        kept = np.flatnonzero(let_in)
        dropped = [int((~let_in & (streams == s)).sum()) for s in (0, 1)]
        for s in (0, 1):
            self._counted[s] += int((counts & (streams == s)).sum())
            table = tables[s]
            if table is not None and dropped[s]:
                tables[s] = table.filter(pa.array(let_in[streams == s]))
        new = self._judged(streams[kept], ranks[kept], before[kept], weights[kept], tables)
        self._waiting.add(new, tables)
        return Arranged(self._leaving_front(timeless), dropped)

    def lets_in(self, stream: int, ranks: Ints, keep: float) -> Bools:
        """Which rows are not dropped in front, by their numbers among all rows of their stream."""
        return chances(self._seed, _FRONT + stream, ranks) < keep

    def _judged(
        self, streams: Ints, ranks: Ints, before: Ints, weights: Floats, tables: Sequence[pa.Table | None]
    ) -> Figures:
        """The yields of rows that came, from the histograms of the last n rows of the other stream."""
        found, stands = np.zeros(len(streams), np.int64), np.zeros(len(streams))
        keys = [self._keys.of(s, table) for s, table in enumerate(tables)]
        self._histograms = self._histograms or [self._histogram(s) for s in (0, 1)]
        for s, histogram in enumerate(self._histograms):
            own = streams == s
            histogram.add(keys[s], ranks[own], weights[own])
        for s in (0, 1):
            own, latest = streams == s, before[streams == s]
            if len(latest):
                other = self._histograms[1 - s]
                found[own], stands[own] = other.count(keys[s], latest - self._rows, latest)
                self._learn(s, weights[own], stands[own])
        for s, histogram in enumerate(self._histograms):
            histogram.forget(self._counted[s] - self._rows)
        return Figures(streams, ranks, before, found, stands, weights)

    def _learn(self, stream: int, weights: Floats, stands: Floats) -> None:
        tally, bins = self.tally.directions[stream], bins_of(stands)
        if not tally.yields.size:
            tally.yields = np.zeros((2, BINS))
        tally.yields[0] += np.bincount(bins, weights, BINS)
        tally.yields[1] += np.bincount(bins, weights * stands, BINS)

    def _histogram(self, stream: int) -> Histogram:
        """The histogram of the rows of a stream that are there: in the windows, and in front of them."""
        store, first = self.stores[stream], self._first[stream]
        waits, histogram = self._waiting.of(stream), Histogram()
        stored = np.ones(store.size) if store.weights is None else store.weights
        histogram.add(self._keys.stored(stream, first), store.places[0][first:], stored[first:])
        waiting = self._keys.of(stream, self._waiting.tables[stream])
        histogram.add(waiting, waits.ranks, waits.weights)
        return histogram

    def _leaving_front(self, timeless: Sequence[pa.Table | None]) -> list[Batch]:
        """Batches of the rows that are joined now; others go on waiting."""
        rear = self.configuration.rear
        figures, probes = self._waiting.pushed_out(rear, self._seed, all_of_them=self._closing)
        leaving = len(probes)
        step = max(_LEAST, self._rows // _PART)
        batches: list[Batch] = []
        self._arriving = []
        for start in range(0, max(leaving, 1), step):
            part = slice(start, min(start + step, leaving))
            rows: dict[int, pa.Table] = {}
            for s in (0, 1):
                own = figures.take(part)
                mine = np.flatnonzero(own.streams == s)
                table = self._waiting.take(s, len(mine))
                if table is not None:
                    order = times_of(table, self._spec.streams[s]).argsort(kind="stable")
                    rows[s] = table.take(pa.array(order))
                    self._arriving.append((own.take(mine[order]), probes[part][mine[order]]))
                if start == 0 and (extra := timeless[s]) is not None:
                    # The store counts them, and leaves them out.
                    rows[s] = joined((rows.get(s), extra))
                    if table is None:
                        self._arriving.append((Figures.none(), np.empty(0, bool)))
            batches.append(rows)
        return batches

    def close(self) -> None:
        """All rows that wait are joined with the next batch."""
        self._closing = True

    # In the join --------------------------------------------------------------------------------

    def entered(self, stream: int, rows: Ints) -> None:
        """Note the places of rows, and what is missed of those that do not probe."""
        figures, probes = self._arriving.pop(0)
        self.stores[stream].place(rows, figures.ranks, figures.before)
        self.stores[stream].weigh(rows, figures.weights)
        self._probing[stream] = rows[probes]
        tally, probing = self.tally.directions[stream], int(probes.sum())
        tally.joined += len(rows)
        tally.learned += probing
        self._units[stream] += UPDATE * len(rows) + PROBE * probing
        seen = float(figures.found[probes].sum())
        amounts = figures.weights * figures.stands
        self._seen += seen
        self._unseen += float(amounts.sum()) - seen
        if len(rows) and (largest := float(figures.weights.max())) > 1:
            # A row counts as the later one of its results, and as often as the earlier one of others.
            twice = 1 + self._came[1 - stream] / max(1, self._came[stream])
            self._variance += twice**2 * float((amounts**2 * (1 - 1 / figures.weights)).sum())
            self._largest = max(self._largest, largest**2)

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """The rows that probe, probe everything."""
        probing, self._probing[origin] = self._probing[origin], np.empty(0, np.int64)
        if len(probing):
            yield Part(probing, EVERYTHING)

    def release(self, held: Sequence[Held]) -> Iterator[Held]:
        """The results whose rows were both in the last n rows when the later one came."""
        for own in held:
            results = own.results
            self.tally.directions[own.origin].results += results.size
            rank, before = (known.take(results.rows_of(0)) for known in self.stores[0].places)
            other_rank, other_before = (known.take(results.rows_of(1)) for known in self.stores[1].places)
            later = other_rank < before
            valid = np.where(later, other_rank >= before - self._rows, rank >= other_before - self._rows)
            found = results if valid.all() else results.select(np.flatnonzero(valid))
            self._met += found.size
            if found.size:
                self.deliver(found)
                yield own._replace(results=found)

    @property
    def _due(self) -> Iterator[Figures]:
        """Rows of this micro-batch that are still to be joined."""
        return (figures for figures, _ in self._arriving)

    def leaving(self) -> Sequence[Leaving]:
        """Rows that no row still to be joined can meet."""
        gone = []
        for s in (0, 1):
            waiting = [own.before[own.streams == 1 - s] for own in (self._waiting.figures, *self._due)]
            limit = min([self._counted[s], *(int(own.min()) for own in waiting if len(own))]) - self._rows
            first = self._first[s]
            ranks = self.stores[s].places[0][first:]
            stays = np.flatnonzero(ranks >= limit)
            left = first + np.flatnonzero((ranks < limit) & (ranks >= self._limits[s]))
            gone.append(Leaving(np.empty(0, np.int64), left))
            self._first[s] = first + int(stays[0]) if len(stays) else self.stores[s].size
            self._limits[s] = max(limit, self._limits[s])
        return gone

    def charges(self) -> Sequence[int]:
        """What entering windows and looking keys up costs."""
        return [round(units) for units in self._units]

    def settle(self) -> Completeness:
        """Results that rows missed which did not probe, and those of rows that were dropped."""
        guessed = self._keys.loose and self._seen > 0
        share = self._met / self._seen if guessed else 1.0
        unsure = self._unseen**2 * share * (1 - share) / self._seen if guessed else 0.0
        variance = max(0.0, share**2 * self._variance + unsure)
        self.missed(Completeness(0.0, share * self._unseen, variance, self._largest))
        self._begin()
        return super().settle()

    def renumbered(self, stream: int, rows: Ints) -> None:
        """Only rows that still count are left."""
        self._first[stream] = 0

    # Between micro-batches ----------------------------------------------------------------------

    def notes(self, order: Sequence[Ints]) -> bytes | None:
        """The rows that wait, and all counters; places are written down with the rows."""
        counters = {
            "seed": self._seed,
            "came": self._came,
            "counted": self._counted,
            "met": self._met,
            "seen": self._seen,
        }
        columns = {"counters": json.dumps(counters).encode(), **self._waiting.to_blobs()}
        return to_blob(pa.table({name: pa.array([own], pa.binary()) for name, own in columns.items()}))

    def recall(self, notes: bytes, order: Sequence[Ints]) -> None:
        """Go on with the rows that waited."""
        found = from_blob(notes).to_pylist()[0]
        counters = json.loads(found["counters"])
        self._seed, self._came, self._counted = (counters[name] for name in ("seed", "came", "counted"))
        self._met, self._seen = counters["met"], counters["seen"]
        self._waiting.recall(found)
        # Rows that left their windows may have been written down before: they leave again.
        self._first, self._limits = [0, 0], [0, 0]
        self._histograms = []
