"""What rows promise by their values: results with rows that are still to come."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.classes import EqualClass, classes_of
from sparkshed.engine.eviction.keys import NOTHING
from sparkshed.engine.eviction.policy import Arrivals
from sparkshed.engine.eviction.slots import ACTIVE, Slots
from sparkshed.engine.eviction.values import Values
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import JoinSpec

#: What a row that is held counts for, beside one that is expected, where a result needs several others.
_HELD = 0.3
#: The least that is expected of a value, of how often it ever came, where two streams are joined.
_AGAIN = 0.3
#: With more streams: the share of the rows that are held for what ever came of their values.
_LASTING = 0.4


class Promise:
    """For each row, the combinations that the other streams are expected to offer for its value.

    That is the product of what is expected of each of them: by what came lately, or by all that ever came, as
    in PROB, whichever says more. What is expected is a mean, and a value that is quiet may come again in all
    streams at once: then the product of the means is far below the mean of the products, and how far is not
    known before it happened. So with more than two streams a given share of the rows is held for what ever
    came of their values. With several joins it is the sum of what each of them promises. A row whose value is
    null promises nothing; where nothing is joined by equality, all rows promise the same.

    Attributes:
        classes: What is joined by equality.
        values: The values of each class.
        renamed: Whether values have other codes than before.
        came: Of the arrivals since the last look, for each class: the codes of those that are next, at which
            of them, or of those before, a code came last, and what it promises then, for each stream.
        first: The number of the first arrival of those that are next.
        buckets: What rows of a stream with one value have in common, by code and stream, in the first class.
    """

    def __init__(self, spec: JoinSpec, stores: Sequence[RowStore], rows: int) -> None:
        """Start with no value; there is room for so many rows."""
        self.classes = classes_of(spec)
        self.values = [Values(len(own.streams), rows) for own in self.classes]
        self._stores = stores
        self._joins = len(spec.joins)
        #: What all that ever came counts for, beside what came lately.
        self._again = [_AGAIN if len(own.streams) == 2 else 0.0 for own in self.classes]
        self._held: list[Ints] = [np.zeros((len(own.streams), 1), np.int64) for own in self.classes]
        self._offer()
        self._places = [_places(own, len(stores)) for own in self.classes]
        self.renamed = False
        self.came: list[tuple[list[int], dict[int, int], list[list[float]]]] = []
        self.first, self.buckets = 0, list[int]()
        #: The codes of rows by their slots, to be read one by one as well as all at once.
        self._codes: list[array[int]] = []
        self._view(0)

    def bind(self, slots: Slots) -> None:
        """Get to know the buffer."""
        self._slots = slots

    def arriving(self, arrivals: Arrivals) -> None:
        """A micro-batch is about to be replayed."""
        self._arrivals = arrivals
        self._keys = [own.keys(arrivals, self._stores) for own in self.classes]
        self._view(self._slots.size)

    def _view(self, size: int) -> None:
        """Room for the codes of so many slots; memory that numpy looks at cannot grow, so it is copied."""
        if not self._codes or len(self._codes[0]) < size:
            known = self._codes or [array("q") for _ in self.classes]
            self._codes = [own + array("q", [NOTHING]) * (size - len(own)) for own in known]
            self._all_codes: list[Ints] = [np.frombuffer(own, np.int64) for own in self._codes]

    def stretch(self, first: int, last: int, seq: int) -> Floats:
        """Some of them arrive, the first with the given number; returns what they promise."""
        slots, streams = self._arrivals.slots[first:last], self._arrivals.streams[first:last]
        joins = np.ones((self._joins, len(slots)))
        self.came, self.first = [], seq
        for number, (own, values) in enumerate(zip(self.classes, self.values, strict=True)):
            places = self._places[number].take(streams)
            risen, *before = values.risen()
            codes, *expected = values.arrive(places, self._keys[number][first:last], seq)
            self._all_codes[number][slots] = codes
            held = self._held[number].take(np.append(codes, risen), axis=1, mode="clip")
            lately, ever = np.concatenate([expected, before], axis=2)
            offers = np.maximum(combinations(lately, held), self._again[number] * alone(ever))
            offered = offers[places, np.arange(len(slots))]
            offered[codes == NOTHING] = 0.0
            offered[places == NOTHING] = 1.0
            joins[own.join] *= offered
            known = dict(zip(risen.tolist(), range(len(slots), offers.shape[1]), strict=True))
            self.came.append((codes.tolist(), known, offers.tolist()))
            if number == 0:
                self.buckets = (codes * len(own.streams) + places).tolist()
        promised: Floats = joins.sum(axis=0)
        return promised

    def now(self, slot: int, stream: int) -> float | None:
        """What a row promises by what came since the last look, if its value did.

        Each class must be a join of its own with all streams.
        """
        every = [
            (own[1].get(codes[slot]), codes[slot]) for own, codes in zip(self.came, self._codes, strict=True)
        ]
        if all(at is None for at, _ in every):
            return None
        return sum(
            own[2][stream][at] if at is not None else float(code != NOTHING and before[stream, code])
            for (at, code), own, before in zip(every, self.came, self._offers, strict=True)
        )

    def look(self, seq: int) -> None:
        """Learn from what came since the last look."""
        active = self._slots.of(ACTIVE)
        for number, values in enumerate(self.values):
            values.look(seq)
            if values.is_crowded:
                codes = self._all_codes[number].take(active)
                self._all_codes[number][active] = np.append(values.trim(codes), NOTHING).take(codes)
                self.renamed = True
        self._hold(active)

    def _hold(self, active: Ints) -> None:
        """Count the rows that are held, by stream and value."""
        streams = self._slots.streams.take(active)
        self._held = []
        for number, (own, values) in enumerate(zip(self.classes, self.values, strict=True)):
            # The last one stands for values that are new.
            held = np.zeros((len(own.streams), values.rates.shape[1] + 1), np.int64)
            if len(own.streams) > 2:
                places, codes = self._places[number].take(streams), self._all_codes[number].take(active)
                known = codes != NOTHING
                np.add.at(held, (places[known], codes[known]), 1)
            self._held.append(held)
        self._offer(active)

    def _offer(self, active: Ints | None = None) -> None:
        """What values promise; by the rows that are there, what they count for that ever came."""
        self._offers: list[Floats] = []
        for number, (values, held) in enumerate(zip(self.values, self._held, strict=True)):
            every = np.arange(values.rates.shape[1])
            lately = combinations(values.rates, held.take(every, axis=1, mode="clip"))
            ever = alone(values.lasting)
            if active is not None and len(lately) > 2:
                places = self._places[number].take(self._slots.streams.take(active))
                codes = self._all_codes[number].take(active)
                own = places[codes != NOTHING], codes[codes != NOTHING]
                self._again[number] = balance(lately[own], ever[own])
            self._offers.append(np.maximum(lately, self._again[number] * ever))

    def of(self, rows: Ints) -> Floats:
        """What rows in some slots promised at the last look."""
        streams = self._slots.streams.take(rows)
        joins = np.ones((self._joins, len(rows)))
        for number, own in enumerate(self.classes):
            places, codes = self._places[number].take(streams), self._all_codes[number].take(rows)
            offered = self._offers[number][places, codes]
            offered[codes == NOTHING] = 0.0
            offered[places == NOTHING] = 1.0
            joins[own.join] *= offered
        promised: Floats = joins.sum(axis=0)
        return promised

    def offered(self, codes: Ints, places: Ints) -> Floats:
        """What values of the first class promised in some streams at the last look."""
        return np.where(codes == NOTHING, 0.0, self._offers[0][places, codes])

    def code(self, row: int) -> int:
        """The code of a row in the first class."""
        return self._codes[0][row]

    def codes(self, rows: Ints) -> Ints:
        """The codes of rows in the first class."""
        return self._all_codes[0].take(rows)

    def notes(self, order: Ints) -> dict[str, Any]:
        """What must be written down; `order` has the slots of all rows."""
        codes = [own.take(order) for own in self._all_codes] if len(order) else []
        values = [own.notes() for own in self.values]
        return {"codes": codes, "held": self._held, "again": self._again, "values": values}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        self._codes = []
        self._view(self._slots.size)
        self.renamed = True
        for own, known in zip(self._all_codes, notes["codes"], strict=False):
            own[order] = known
        for values, known in zip(self.values, notes["values"], strict=True):
            values.recall(known)
        self._held = [own.copy() for own in notes["held"]]
        # Checkpoints may have been written before all that ever came counted.
        self._again = list(notes.get("again", self._again))
        self._offer()


def _places(own: EqualClass, streams: int) -> Ints:
    """The place of each stream in a class."""
    places = np.full(streams, NOTHING)
    places[list(own.streams)] = np.arange(len(own.streams))
    return places


def balance(lately: Floats, ever: Floats) -> float:
    """What all that ever came must count for, so that it tells for a given share of the rows.

    Args:
        lately: What each row promises by what came lately.
        ever: The same by all that ever came.

    >>> balance(np.array([1.0, 1.0, 1.0, 1.0, 1.0]), np.array([1.0, 2.0, 4.0, 8.0, 0.0]))
    0.5
    """
    some = ever > 0
    if not some.any():
        return 0.0
    ratios = np.sort(lately[some] / ever[some])
    return float(ratios[min(len(ratios) - 1, int(_LASTING * len(lately)))])


def alone(ever: Floats) -> Floats:
    """The results that a row of each stream will have if all comes as it ever did."""
    return combinations(ever, np.zeros(ever.shape, np.int64))


def combinations(expected: Floats, held: Ints) -> Floats:
    """The results that a row of each stream will have with what is expected of the others.

    Each is with a row that comes in one of them, and with rows of the rest that are held or come before it.

    >>> combinations(np.array([[2.0], [3.0]]), np.array([[9], [9]])).tolist()
    [[3.0], [2.0]]
    >>> combinations(np.array([[2.0], [3.0], [5.0]]), np.array([[10], [0], [10]])).tolist()
    [[39.0], [41.0], [21.0]]
    """
    streams = range(len(expected))
    if len(expected) == 2:
        return expected[::-1]
    there = expected + _HELD * held
    found = np.zeros_like(expected)
    for own in streams:
        for last in streams:
            if last != own:
                product = expected[last].copy()
                for other in streams:
                    if other not in (own, last):
                        product *= there[other]
                found[own] += product
    return found
