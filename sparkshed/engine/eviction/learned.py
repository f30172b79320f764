"""GreedyDual-Join with credits that are worth what they foretell."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import AnyArray, Floats, Ints
from sparkshed.engine.eviction.curves import Ages
from sparkshed.engine.eviction.foretelling import Foretelling
from sparkshed.engine.eviction.policy import Arrivals, Policy
from sparkshed.engine.eviction.promise import Promise
from sparkshed.engine.eviction.slots import ACTIVE, NEVER, RESERVED, Slots
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import JoinSpec

#: Arrivals after which a credit counts for 1/e, over the rows of the buffer; the last one never fades.
_FADING = (0.25, 2.0, 16.0, np.inf)
#: Steps of an age curve that rows of each age are taken to have lived for.
_ASSUMED = 8.0
#: Weights to start with: of being there at all, and of all credits together.
_THERE, _CREDITS = 0.3, 1.0
#: What credits are worth is known in so many steps while the buffer fills once, for so many times; older ones
#: are taken to be that old.
_STEPS, _LAGS = 16, 8
_OLDEST = _STEPS * _LAGS - 1
#: Credits are looked at once in so many arrivals, as a share of the rows, and as a number at least.
_SHARE, _LEAST = 8, 16


class Learned(Policy):
    """What a row will yield, from its credits, its value and its age.

        priority  =  age curve  ×  (there  +  credits  +  newness  +  what its value promises)

    A row has one credit for each arrival that it had a result with; a new one has those that it would have
    had before, as far as its partners are still there. Credits fade, at four speeds. Where columns must be
    equal, what its value promises counts, too. How much each foretells is learned from rows that are there:
    least squares of what they yield until the next look. So a stream in which some values stay frequent, and
    one in which they come in bursts, get the credits that suit them, and the initial credit is that of rows
    that began alike.

    The age curve tells how much more rows yield at some ages than at others; a row counts for the best that
    is ahead of it. Credits of many results at once count for as much as their root.
    """

    credits = learns = reprices = foretells = True

    def __init__(self, spec: JoinSpec, stores: Sequence[RowStore], rows: int, *, aged: bool) -> None:
        """Start with credits that count by how late they are.

        Args:
            spec: What is joined.
            stores: The rows of each stream.
            rows: Rows that there is room for.
            aged: Whether there are ages at which rows yield more, as where only some slices are probed.
        """
        # A row is the partner of one result of an arrival, and not of several.
        self._once = len(stores) == 2 and not spec.beside
        self._decays: Floats = 1 / (rows * np.array(_FADING))
        self._rows = rows
        kernels = len(_FADING)
        believed = np.zeros(2 + 2 * kernels)
        believed[0], believed[1 : 1 + kernels] = _THERE, _CREDITS / kernels
        self._foretelling = Foretelling(believed)
        self._promise = Promise(spec, stores, rows)
        self._ages = Ages(spec.retentions, _ASSUMED) if aged else None
        self._coarse = max(1, rows // _STEPS)
        self._lags = self._coarse * np.arange(_LAGS * _STEPS)
        self._since = 0
        self._events: set[int] = set()
        self._many: Ints | None = None
        self._begun: list[tuple[int, Sequence[int] | Ints]] = []
        self._reprice()

    def bind(self, slots: Slots, limit: int) -> None:
        """Get to know the buffer."""
        super().bind(slots, limit)
        self._promise.bind(slots)
        self._marks: Floats = np.zeros((len(_FADING), 0))
        self._steps, self._met = array("d"), array("q")
        self._all_steps: Floats = np.empty(0)
        self._places: Ints = np.empty(0, np.int64)
        self._track(np.empty(0, np.int64), np.zeros((len(self._foretelling.weights), 0), np.float32))

    def _reprice(self) -> None:
        """What is worth how much, until the next look."""
        kernels = len(_FADING)
        weights = self._foretelling.weights
        per_credit = weights[1 : 1 + kernels] * self._scales()
        self._all_faded: Floats = per_credit @ np.exp(-self._decays[:, None] * self._lags)
        self._faded = self._all_faded.tolist()
        self._step = self._faded[0]
        new = 0.0 if self._ages else weights[1 + kernels : 1 + 2 * kernels].sum()
        self._newest = float(weights[0] + new)

    def _scales(self) -> Floats:
        """From counts to arrivals per buffer; those that never fade count like those that hardly do."""
        return self._rows * np.where(self._decays > 0, self._decays, self._decays[-2])

    def arriving(self, arrivals: Arrivals) -> None:
        """Find the keys of all new rows."""
        self._arrivals = arrivals
        self._promise.arriving(arrivals)
        self._base = int(self.slots.seqs[arrivals.slots[0]])
        more = self.slots.size - len(self._places)
        if more > 0:
            self._marks = np.concatenate([self._marks, np.zeros((len(_FADING), more))], axis=1)
            # Memory that numpy looks at cannot grow, so it is copied.
            self._steps = self._steps + array("d", bytes(8 * more))
            self._all_steps = np.frombuffer(self._steps)
            self._met.extend([-1] * more)
            self._places = np.concatenate([self._places, np.full(more, -1)])

    def stretch(self, first: int, last: int, seq: int) -> None:
        """What their values promise is known beforehand."""
        promised = self._promise.stretch(first, last, seq)
        self._first, self._begins = seq, (self._newest + self._foretelling.weights[-1] * promised).tolist()
        streams = self._arrivals.streams[first:last]
        self._fresh = [1.0] * len(streams) if self._ages is None else self._ages.fresh.take(streams).tolist()

    def meet(self, partners: Sequence[int], seq: int) -> None:
        """Credit for the partners of a result, once for each arrival."""
        met, steps, priority, seqs = self._met, self._steps, self.slots.priority, self.slots.seq
        latest = -1
        for partner in partners:
            if met[partner] != seq:
                met[partner] = seq
                priority[partner] += steps[partner]
            latest = max(latest, seqs[partner])
        self._events.add(latest)

    def credit(self, results: Ints, seq: int) -> None:
        """The same for many results."""
        seqs = self.slots.seqs.take(results)
        partners = results[:, 0] if self._once else np.unique(results)
        self._many = np.sort(seqs[:, 0]) if self._once else np.unique(seqs.max(axis=1))
        self.slots.priorities[partners] += self._all_steps.take(partners)

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """What rows that began alike are worth."""
        credit, worth = self._begins[seq - self._first], self._fresh[seq - self._first]
        if self._events or self._many is not None:
            credit += self._begin(slot, seq)
        self._steps[slot] = worth * self._step
        self._places[slot] = -1
        self._marks[:, slot] = 0.0
        return float(worth * credit)

    def _begin(self, slot: int, seq: int) -> float:
        """What the credits are worth that a new row begins with."""
        events = sorted(self._events) if self._many is None else self._many
        self._begun.append((slot, events))
        if self._many is None:
            faded, coarse = self._faded, self._coarse
            worth = sum([faded[min((seq - event) // coarse, _OLDEST)] for event in events])
        else:
            lags = np.minimum((seq - self._many) // self._coarse, _OLDEST)
            worth = float(self._all_faded.take(lags).sum())
        self.refused()
        return float(worth)

    def refused(self) -> None:
        """The row that arrived did not enter."""
        self._events.clear()
        self._many = None

    def lost(self, slot: int, seq: int) -> None:
        """A row no longer takes part."""
        place = self._places[slot]
        if place >= 0:
            self._gone[place] = seq

    def learn(self, partners: Ints, places: Ints, now: Ints, upto: int) -> None:
        """Count credits, yields, and results by the ages of their rows."""
        if self._begun:
            begun = np.repeat([slot for slot, _ in self._begun], [len(own) for _, own in self._begun])
            events = np.concatenate([own for _, own in self._begun])
            self._begun.clear()
            self._mark(begun, events)
        slots, places, now, amounts = _meetings(partners, places, now, once=self._once)
        self._mark(slots, self._base + places)
        if self._ages is not None:
            self._ages.yielded(self.slots, slots, now, amounts)
        tracked = self._places.take(slots)
        own = tracked >= 0
        own[own] = self._base + places[own] < self._gone.take(tracked[own])
        np.add.at(self._yields, tracked[own], amounts[own])

    def _mark(self, slots: Ints, seqs: Ints) -> None:
        """Rows have a credit of some arrival."""
        for own, decay in zip(self._marks, self._decays, strict=True):
            np.add.at(own, slots, np.exp(decay * (seqs - self._since)))

    def interval(self, active: int) -> int:
        """A share of the rows."""
        return max(_LEAST, active // _SHARE)

    def refresh(self, seq: int, now: int) -> None:
        """Learn from what the rows yielded, and say what they are worth."""
        self._foretell(seq)
        self._marks *= np.exp(-self._decays * (seq - self._since))[:, None]
        self._since = seq
        active = self.slots.of(ACTIVE)
        self._promise.look(seq)
        promised = self._promise.of(active)
        self._reprice()
        features = self._features(active, promised, seq)
        worth = self._foretelling.weights @ features
        steps: Floats = np.full(len(active), self._step)
        if self._ages is not None:
            self._ages.look(self.slots, self.slots.of(ACTIVE, RESERVED), now)
            ahead = self._ages.worth(self.slots, active, now)
            worth, steps = worth * ahead, steps * ahead
            features = features * self._ages.rates(self.slots, active, now)
        self.slots.priorities[active] = worth
        self._all_steps[active] = steps
        self._track(active, features.astype(np.float32))

    def _foretell(self, seq: int) -> None:
        lengths = np.minimum(self._gone, seq) - self._since
        if len(lengths) and seq > self._since:
            self._foretelling.learn(self._tracked, lengths.astype(np.float64), self._yields * self._rows)

    def _features(self, slots: Ints, promised: Floats, seq: int) -> Floats:
        """What is known of rows: being there, credits, newness and values, one row in each column."""
        newness = np.exp(-self._decays[:, None] * (seq - self.slots.seqs.take(slots)))
        if self._ages is not None:
            newness[:] = 0.0
        credits = self._scales()[:, None] * self._marks.take(slots, axis=1)
        return np.concatenate([np.ones((1, len(slots))), credits, newness, promised[None]])

    def _track(self, slots: Ints, features: AnyArray) -> None:
        """See what rows yield until the next look."""
        self._places[:] = -1
        self._places[slots] = np.arange(len(slots))
        self._tracked = features
        self._yields: Floats = np.zeros(len(slots))
        self._gone: Ints = np.full(len(slots), NEVER)

    def notes(self, order: Ints) -> dict[str, Any]:
        """What is known of the rows, and of rows in general."""
        columns = {"marks": self._marks.take(order, axis=1), "places": self._places.take(order)}
        columns["steps"] = self._all_steps.take(order)
        return {
            "columns": columns,
            "tracked": (self._tracked, self._yields, self._gone),
            "since": self._since,
            "foretelling": self._foretelling.notes(),
            "promise": self._promise.notes(order),
            "ages": None if self._ages is None else self._ages.notes(),
        }

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        size = self.slots.size
        self._marks, self._places = np.zeros((len(_FADING), size)), np.full(size, -1)
        self._steps, self._met = array("d", bytes(8 * size)), array("q", [-1]) * size
        self._all_steps = np.frombuffer(self._steps)
        columns = notes["columns"]
        self._marks[:, order], self._places[order] = columns["marks"], columns["places"]
        self._all_steps[order] = columns["steps"]
        self._tracked, yields, gone = notes["tracked"]
        self._yields, self._gone = yields.copy(), gone.copy()
        self._since = notes["since"]
        self._foretelling.recall(notes["foretelling"])
        self._promise.recall(notes["promise"], order)
        if self._ages is not None:
            self._ages.recall(notes["ages"])
        self._reprice()


def _meetings(partners: Ints, places: Ints, now: Ints, *, once: bool) -> tuple[Ints, Ints, Ints, Floats]:
    """Each partner once for each arrival, in their order, with the root of the results that they had."""
    slots = partners.ravel()
    if once:
        return slots, places, now, np.ones(len(slots))
    wide = np.repeat(places, partners.shape[1])
    size = int(slots.max(initial=0)) + 1
    _, first, counts = np.unique(wide * size + slots, return_index=True, return_counts=True)
    order = np.argsort(first)
    first, counts = first.take(order), counts.take(order)
    result: Ints = first // partners.shape[1]
    amounts: Floats = np.sqrt(counts)
    own: Ints = slots[first]
    return own, places.take(result), now.take(result), amounts
