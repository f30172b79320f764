"""Rows on their way to windows of rows: their order of arrival, and the keys that they are joined by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints, Vector
from sparkshed.engine.codes import mix
from sparkshed.engine.decode import normalise
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.protocol import Batch
from sparkshed.engine.timing import NEVER, times_of
from sparkshed.planner.physical import JoinSpec, StreamExec
from sparkshed.sql.predicate import Equality

Tables = list[pa.Table | None]


def in_arrival_order(streams: Sequence[StreamExec], batch: Batch) -> tuple[Ints, Tables, Tables]:
    """The streams of all rows in the order of arrival, the rows by stream, and those without a time."""
    tables: Tables = [None, None]
    timeless: Tables = [None, None]
    times: list[Ints] = [np.empty(0, np.int64)] * 2
    for s, rows in batch.items():
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        table = table.rename_columns([f"c{c}" for c in range(table.num_columns)])
        known = times_of(table, streams[s])
        order = known.argsort(kind="stable")
        timed = int(known[order].searchsorted(NEVER))
        tables[s] = table.take(pa.array(order[:timed]))
        times[s] = known.take(order[:timed])
        if timed < len(order):
            timeless[s] = table.take(pa.array(order[timed:]))
    numbers = np.repeat([0, 1], [len(own) for own in times])
    return numbers[np.concatenate(times).argsort(kind="stable")], tables, timeless


class Keys:
    """The equalities of a join of two streams, as one code for each row.

    Attributes:
        loose: Whether there is more to a result than equal keys: other conditions, or time bounds.
    """

    def __init__(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Find the equalities."""
        hop = spec.directions[0].hops[0]
        forms = (*hop.kernel.forms, *(check.form for check in hop.checks))
        equal = [form for form in forms if isinstance(form, Equality)]
        bounded = spec.bounds[0][1] is not None or spec.bounds[1][0] is not None
        self.loose = bounded or len(equal) < len(forms)
        self._columns = [
            [(form.left if form.left.stream == s else form.right).column for form in equal] for s in (0, 1)
        ]
        self._safe = [form.null_safe for form in equal]
        self._streams, self._stores = spec.streams, stores

    def stored(self, stream: int, first: int) -> Vector:
        """Codes of the rows of a store from `first` on."""
        store = self._stores[stream]
        if store.size <= first:
            return Vector(np.empty(0, np.int64), None)
        parts = [store.codes(column) for column in self._columns[stream]]
        later = [Vector(p.values[first:], None if p.valid is None else p.valid[first:]) for p in parts]
        return mix(later, self._safe)

    def of(self, stream: int, table: pa.Table | None) -> Vector:
        """Codes of rows that are in no store yet."""
        if table is None or not table.num_rows:
            return Vector(np.empty(0, np.int64), None)
        types, book = self._streams[stream].types, self._stores[stream].codebook
        encoded = []
        for column in self._columns[stream]:
            array = normalise(table.column(column).combine_chunks(), types[column])
            encoded.append(book.encode(array, types[column]))
        return mix(encoded, self._safe)


def joined(tables: Sequence[pa.Table | None]) -> pa.Table | None:
    """The rows of all tables; None if there are none."""
    some = [table for table in tables if table is not None and table.num_rows]
    return pa.concat_tables(some, promote_options="permissive") if some else None


def cut(table: pa.Table | None, rows: int) -> tuple[pa.Table | None, pa.Table | None]:
    """The first rows of a table, and the others."""
    if table is None or not rows:
        return None, table
    rest = table.slice(rows)
    return table.slice(0, rows), rest if rest.num_rows else None
