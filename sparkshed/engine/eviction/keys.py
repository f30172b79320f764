"""Keys of rows: what must be equal to the key of another row, as a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints, Vector
from sparkshed.engine.codes import mix
from sparkshed.engine.decode import decode, is_text, validity
from sparkshed.engine.eviction.policy import Arrivals
from sparkshed.engine.hashing import hash_bytes
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.predicate import Equality
from sparkshed.sql.types import FRACTIONAL, is_evaluated

#: The key of a row that equals nothing.
NOTHING = -1


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


class Keys:
    """The keys of rows, for each link of a join."""

    def __init__(self, links: Sequence[Link], stores: Sequence[RowStore]) -> None:
        """Take the links, and where the rows are."""
        self.links = links
        self._stores = stores
        joins = sorted({link.join for link in links})
        #: What each stream has to do with in each join: a link, and the side that it is.
        self.sides = [[_sides(links, join, stream) for join in joins] for stream in range(len(stores))]

    def of(self, arrivals: Arrivals) -> list[Ints]:
        """The keys of new rows for each link; `NOTHING` for rows of other streams, too."""
        found = []
        for link in self.links:
            keys = np.full(len(arrivals), NOTHING)
            for side, stream in enumerate(link.streams):
                own = arrivals.streams == stream
                store = self._stores[stream]
                keys[own] = hashed(store, link.columns[side], link.null_safe, arrivals.rows[own])
            found.append(keys)
        return found


def hashed(store: RowStore, columns: Sequence[int], null_safe: Sequence[bool], rows: Ints) -> Ints:
    """The keys that columns of rows make; `NOTHING` where a null equals nothing."""
    lanes = [store.lane(_stable, column).take(rows) for column in columns]
    mixed = mix(lanes, list(null_safe))
    return mixed.values if mixed.valid is None else np.where(mixed.valid, mixed.values, NOTHING)


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
