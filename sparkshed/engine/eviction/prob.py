"""PROB: the row leaves whose value is the rarest in the other streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints, Vector
from sparkshed.engine.codes import mix
from sparkshed.engine.decode import decode, is_text, validity
from sparkshed.engine.eviction.policy import Arrivals, Policy
from sparkshed.engine.eviction.slots import Slots
from sparkshed.engine.hashing import hash_bytes
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.predicate import Equality
from sparkshed.sql.types import FRACTIONAL, is_evaluated

#: The hash of a key that equals nothing.
_NOTHING = -1
_DEPTH = 4


class Link(NamedTuple):
    """Columns of two streams that are equal in every result of a join."""

    join: int
    streams: tuple[int, int]
    columns: tuple[tuple[int, ...], tuple[int, ...]]
    null_safe: tuple[bool, ...]


def links_of(spec: JoinSpec) -> list[Link]:
    """The equalities of all joins by pairs of streams, with all columns that a pair has in common."""
    return [link for number, join in enumerate(spec.joins) for link in _links(number, join)]


def _links(number: int, join: JoinSpec) -> list[Link]:
    found: dict[tuple[int, int], dict[tuple[int, int], bool]] = {}
    for hop in join.every_hop:
        for form in (*hop.kernel.forms, *(check.form for check in hop.checks)):
            if isinstance(form, Equality):
                sides = sorted([(form.left.stream, form.left.column), (form.right.stream, form.right.column)])
                (one, first), (other, second) = sides
                found.setdefault((one, other), {})[first, second] = form.null_safe
    links = []
    for pair, columns in sorted(found.items()):
        ordered = sorted(columns)
        sides_of = tuple(c for c, _ in ordered), tuple(c for _, c in ordered)
        links.append(Link(number, pair, sides_of, tuple(columns[own] for own in ordered)))
    return links


class Counts(Protocol):
    """How often values came."""

    def add(self, key: int) -> None:
        """One more."""

    def get(self, key: int) -> int:
        """How many there were."""


class Exactly:
    """One counter for each value."""

    def __init__(self) -> None:
        """Start with no value."""
        self.counts: dict[int, int] = {}

    def add(self, key: int) -> None:
        """One more."""
        self.counts[key] = self.counts.get(key, 0) + 1

    def get(self, key: int) -> int:
        """How many there were."""
        return self.counts.get(key, 0)


class CountMin:
    """A count-min sketch: so many counters in four rows, whatever the number of values; never too few.

    With n values counted in w counters it is too high by more than `10.9 n / w` with a chance of 2 % at most.
    """

    def __init__(self, counters: int) -> None:
        """Start with zeros."""
        self._width = max(1, counters // _DEPTH)
        self.counts = [0] * (_DEPTH * self._width)

    def _places(self, key: int) -> list[int]:
        step = (key >> 32) | 1
        return [row * self._width + (key + row * step) % self._width for row in range(_DEPTH)]

    def add(self, key: int) -> None:
        """One more."""
        for place in self._places(key):
            self.counts[place] += 1

    def get(self, key: int) -> int:
        """How many there were at most."""
        return min(self.counts[place] for place in self._places(key))


class Prob(Policy):
    """The priority of a row is how often its key came in the streams that it is joined with by equality.

    With several such streams it is the product: the number of combinations that they offer. With several
    joins it is the sum of what each of them offers.
    """

    def __init__(self, links: Sequence[Link], stores: Sequence[RowStore], counts: Callable[[], Any]) -> None:
        """Count the values of the links, with a counter of some kind."""
        self._links = links
        self._stores = stores
        self._counts = [(counts(), counts()) for _ in links]
        # What each stream has to do with in each join: a link, and the side that it is.
        joins = sorted({link.join for link in links})
        self._sides = [[_sides(links, join, stream) for join in joins] for stream in range(len(stores))]

    def bind(self, slots: Slots, limit: int) -> None:
        """Get to know the buffer."""
        super().bind(slots, limit)
        self._keys: list[Ints] = [np.empty(0, np.int64) for _ in self._links]

    def arriving(self, arrivals: Arrivals) -> None:
        """Find the keys of all new rows."""
        for number, link in enumerate(self._links):
            if len(self._keys[number]) < self.slots.size:
                more = np.zeros(self.slots.size - len(self._keys[number]), np.int64)
                self._keys[number] = np.concatenate([self._keys[number], more])
            for side, stream in enumerate(link.streams):
                own = arrivals.streams == stream
                rows, slots = arrivals.rows[own], arrivals.slots[own]
                self._keys[number][slots] = self._hashed(link, side, rows)
        self._new = [keys.take(arrivals.slots).tolist() for keys in self._keys]

    def _hashed(self, link: Link, side: int, rows: Ints) -> Ints:
        store = self._stores[link.streams[side]]
        columns = [store.lane(_stable, column).take(rows) for column in link.columns[side]]
        hashed = mix(columns, list(link.null_safe))
        return hashed.values if hashed.valid is None else np.where(hashed.valid, hashed.values, _NOTHING)

    def arrive(self, place: int, stream: int) -> None:
        """Count its keys."""
        for number, side in chain.from_iterable(self._sides[stream]):
            key = self._new[number][place]
            if key != _NOTHING:
                self._counts[number][side].add(key)

    def enter(self, slot: int, seq: int, group: int, own: int) -> float:
        """As it is now."""
        return self.current(slot)

    def current(self, slot: int) -> float:
        """How many combinations the others have offered."""
        total = 0.0
        for sides in self._sides[self.slots.stream[slot]]:
            product = 1.0
            for number, side in sides:
                product *= self._counts[number][1 - side].get(int(self._keys[number][slot]))
            total += product
        return total

    def notes(self, order: Ints) -> dict[str, Any]:
        """The counts, and the keys of the rows."""
        counts = [[side.counts for side in pair] for pair in self._counts]
        return {"counts": counts, "keys": [own.take(order) for own in self._keys] if len(order) else []}

    def recall(self, notes: dict[str, Any], order: Ints) -> None:
        """Go on from there."""
        for pair, known in zip(self._counts, notes["counts"], strict=True):
            for side, counts in zip(pair, known, strict=True):
                side.counts = counts
        for number, keys in enumerate(notes["keys"]):
            self._keys[number] = np.zeros(self.slots.size, np.int64)
            self._keys[number][order] = keys


def _sides(links: Sequence[Link], join: int, stream: int) -> list[tuple[int, int]]:
    """The links of a stream in a join, and the side that it is in each."""
    return [
        (number, link.streams.index(stream))
        for number, link in enumerate(links)
        if link.join == join and stream in link.streams
    ]


def _stable(array: pa.Array, type_: str) -> Vector:
    """Numbers for values, the same in every process; equal for values that Spark calls equal."""
    if is_evaluated(type_) and not is_text(type_):
        vector = decode(array, type_)
        if vector.values.dtype.itemsize <= 8:
            if type_ in FRACTIONAL:
                doubles = vector.values.astype(np.float64) + 0.0
                doubles[np.isnan(doubles)] = np.nan
                return Vector(doubles.view(np.int64), vector.valid)
            return Vector(vector.values.astype(np.int64), vector.valid)
    words = array if is_text(type_) else pa.array([str(value) for value in array.to_pylist()])
    large = words.cast(pa.large_binary()).fill_null(b"")
    offsets = np.frombuffer(large.buffers()[1], np.int64)[large.offset : large.offset + len(large) + 1]
    data = large.buffers()[2]
    letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    first = int(offsets[0]) if len(offsets) else 0
    hashed = hash_bytes(offsets - first, letters[first:]) if len(large) else np.empty(0, np.uint64)
    return Vector(hashed.view(np.int64), validity(array))
