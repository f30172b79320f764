"""Windows with a limit, under any strategy."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.eviction.making import buffer_of
from sparkshed.engine.eviction.meetings import Meetings
from sparkshed.engine.eviction.policy import Arrivals
from sparkshed.engine.eviction.sampling import Sampler
from sparkshed.engine.growing import Growing
from sparkshed.engine.measure import row_bytes
from sparkshed.engine.probing import Reach
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.protocol import Held, Leaving, Strategy
from sparkshed.engine.timing import times_of
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import JoinSpec


class Evicting(Learning):
    """Rows leave when there are too many; results wait until it is known which of them still met.

    All rows of a micro-batch are joined first, with each other, too. Then they are replayed one by one, as if
    each had come alone. What the join found beyond that is known exactly to be missed; what it could not
    find, because rows had left before, is seen by the reserve.
    """

    holds = True
    #: Whether rows probe the best slices only, so that rows of some ages are probed more than others.
    harvests = False

    def __init__(
        self,
        configuration: Configuration,
        buffering: Buffering,
        generator: np.random.Generator,
        *,
        per_stream: bool = False,
    ) -> None:
        """Start with empty windows.

        Args:
            configuration: What to do first.
            buffering: The limit, and who leaves.
            generator: Decides what is left to chance.
            per_stream: Fill one histogram per stream, too, as in the paper.
        """
        super().__init__(configuration, generator, per_stream=per_stream)
        self.buffering = buffering

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""
        super().bind(spec, stores)
        self._seed = int(self.generator.integers(1 << 62))
        self.buffer = buffer_of(self.buffering, spec, stores, (self._seed,), harvests=self.harvests)
        self._tell_price()
        self.sampler: Sampler | None = None
        if self.buffering.sample is not None:
            self.sampler = Sampler(
                self.buffering.sample, self.buffering.room, spec.basic, spec.retentions, (self._seed, 2)
            )
        self._slot_of = [Growing(np.empty(0, np.int64)) for _ in stores]
        self._row_of: Ints = np.empty(0, np.int64)
        self._new: list[Ints] = [np.empty(0, np.int64) for _ in stores]

    def configure(self, configuration: Configuration) -> None:
        """Follow a new configuration from the next micro-batch on."""
        super().configure(configuration)
        self._tell_price()

    def _tell_price(self) -> None:
        if self.buffering.harvest:
            self.buffer.price = self.configuration.price

    def arriving(self, batch: Mapping[int, pa.Table | pa.RecordBatch | None]) -> None:
        """Find out what share of the rows can be kept."""
        if self.sampler is not None:
            streams = self._spec.streams
            self.sampler.arriving({s: times_of(t, streams[s]) for s, t in batch.items() if t is not None})

    def reaches(self, origin: int) -> Mapping[int, Sequence[Reach]]:
        """Everything: any row may have to leave."""
        return dict.fromkeys(range(len(self.stores)), (Reach(),))

    def admit(self, stream: int, count: int) -> Bools | None:
        """A sample, where one is asked for."""
        admitted = super().admit(stream, count)
        if self.sampler is None:
            return admitted
        sampled = self.sampler.admit(stream, count)
        return sampled if admitted is None else admitted & sampled

    def entered(self, stream: int, rows: Ints) -> None:
        """They will arrive when all are joined."""
        super().entered(stream, rows)
        if self.sampler is not None:
            self.stores[stream].weigh(rows, self.sampler.weights(self.stores[stream].times.take(rows)))
        self._new[stream] = rows
        self._slot_of[stream].extend(np.full(len(rows), -1))

    def _arrivals(self) -> tuple[Arrivals, Ints]:
        """The new rows in the order of their times, and what they cost."""
        streams = np.repeat(np.arange(len(self._new)), [len(rows) for rows in self._new])
        rows = np.concatenate(self._new)
        times = np.concatenate([s.times.take(r) for s, r in zip(self.stores, self._new, strict=True)])
        if self.buffering.bytes is None:
            costs = np.ones(len(rows), np.int64)
        else:
            costs = np.concatenate([row_bytes(s, r) for s, r in zip(self.stores, self._new, strict=True)])
        order = np.lexsort((rows, streams, times))
        slots = self.buffer.slots.take(len(rows))
        arrivals = Arrivals(slots, streams.take(order), rows.take(order), times.take(order))
        if self.buffer.slots.size > len(self._row_of):
            more = np.zeros(self.buffer.slots.size - len(self._row_of), np.int64)
            self._row_of = np.concatenate([self._row_of, more])
        self._row_of[slots] = arrivals.rows
        for stream, own in enumerate(self._slot_of):
            mine = arrivals.streams == stream
            own.values[arrivals.rows[mine]] = slots[mine]
        self._new = [rows[:0] for rows in self._new]
        return arrivals, costs.take(order)

    def release(self, held: Sequence[Held]) -> Iterator[Held]:
        """Replay the arrivals, then emit what they met."""
        arrivals, costs = self._arrivals()
        place_of = np.empty(self.buffer.slots.size, np.int64)
        place_of[arrivals.slots] = np.arange(len(arrivals))
        found = [self._met(own, place_of) for own in held]
        partners = [own for own, _ in found] or [np.empty((0, len(self.stores) - 1), np.int64)]
        places = [own for _, own in found] or [np.empty(0, np.int64)]
        self.buffer.replay(
            arrivals, costs, Meetings(np.concatenate(partners), np.concatenate(places), len(arrivals))
        )
        for own, (slots, due) in zip(held, found, strict=True):
            there = np.flatnonzero(self.buffer.emitted(slots, due))
            lost = own.results.size - len(there)
            if lost:
                self._delivered -= lost
                self.missed(Completeness(0.0, float(lost)))
            if len(there):
                yield own if not lost else own._replace(results=own.results.select(there))

    def _met(self, held: Held, place_of: Ints) -> tuple[Ints, Ints]:
        """The slots of partners, and the places of the rows that arrive last."""
        rows = held.results.rows_of
        last = self._slot_of[held.origin].values.take(rows(held.origin))
        others = [s for s in range(len(self.stores)) if s != held.origin]
        return np.column_stack([self._slot_of[s].values.take(rows(s)) for s in others]), place_of.take(last)

    def leaving(self) -> Sequence[Leaving]:
        """Rows that were evicted, and rows that made room because they were out of reach."""
        slots = self.buffer.slots
        for slot, weight in self.buffer.reserve.weights.items():
            self.stores[slots.stream[slot]].weigh(self._row_of[slot : slot + 1], weight)
        self.buffer.reserve.weights.clear()
        found = []
        for evicted, ended in zip(
            self._by_stream(self.buffer.evicted), self._by_stream(self.buffer.ended), strict=True
        ):
            found.append(Leaving(evicted, ended))
        slots.let_go(self.buffer.evicted)
        slots.let_go(self.buffer.ended)
        self.buffer.evicted, self.buffer.ended = [], []
        return found

    def _by_stream(self, gone: Sequence[int]) -> list[Ints]:
        """The rows in some slots, in order."""
        slots = np.array(gone, np.int64)
        streams, rows = self.buffer.slots.streams.take(slots), self._row_of.take(slots)
        return [np.sort(rows[streams == stream]) for stream in range(len(self.stores))]

    def expired(self, stream: int, rows: Ints) -> None:
        """Rows are out of reach of anything that may still come."""
        self.buffer.expire(self._slot_of[stream].values.take(rows))

    def notes(self, order: Sequence[Ints]) -> bytes | None:
        """What must be written down beside the rows, which are in the given order."""
        slots = [own.values.take(rows) for own, rows in zip(self._slot_of, order, strict=True)]
        sampled = None if self.sampler is None else self.sampler.notes()
        return pickle.dumps({"buffer": self.buffer.notes(np.concatenate(slots)), "sampler": sampled})

    def recall(self, notes: bytes, order: Sequence[Ints]) -> None:
        """Go on from what was written down; the rows are there, in the same order."""
        known = pickle.loads(notes)
        counts = [len(rows) for rows in order]
        slots = self.buffer.slots.take(sum(counts))
        self._row_of = np.zeros(self.buffer.slots.size, np.int64)
        for stream, (rows, own) in enumerate(
            zip(order, np.split(slots, np.cumsum(counts)[:-1]), strict=True)
        ):
            self._slot_of[stream] = Growing(np.full(self.stores[stream].size, -1))
            self._slot_of[stream].values[rows] = own
            self._row_of[own] = rows
        self.buffer.recall(known["buffer"], slots, np.repeat(np.arange(len(order)), counts))
        if self.sampler is not None:
            self.sampler.recall(known["sampler"])

    def renumbered(self, stream: int, rows: Ints) -> None:
        """Slots follow their rows."""
        super().renumbered(stream, rows)
        slots = self._slot_of[stream].values.take(rows)
        self._slot_of[stream] = Growing(slots)
        self._row_of[slots] = np.arange(len(slots))


def limit_of(strategy: Strategy) -> int:
    """What windows may hold, in rows or in bytes; 0 without a limit."""
    return strategy.buffering.limit if isinstance(strategy, Evicting) else 0


def drop_of(strategy: Strategy) -> float:
    """The probability with which rows are sampled out."""
    sampler = strategy.sampler if isinstance(strategy, Evicting) else None
    return 0.0 if sampler is None else sampler.drop
