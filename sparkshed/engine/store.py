"""Rows of one stream: Arrow payload, times, and numpy columns decoded once per row."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Floats, Ints, Vector, is_sorted
from sparkshed.engine.codes import Codebook
from sparkshed.engine.decode import decode_times, normalise, validity
from sparkshed.engine.errors import NullTimeError
from sparkshed.engine.growing import Growing, Lane
from sparkshed.engine.lists import FORMS, ListLane, Lists, empty_lists
from sparkshed.planner.physical import StreamExec

Compute = Callable[[pa.Array, str], Vector]

#: Columns of a snapshot: how many rows each row stands for, and its place among all that came.
_WEIGHT = "weight"
_PLACES = ("rank", "before")


class RowStore:
    """All rows of a stream that some basic window holds, addressed by row number.

    Row numbers are positions in every column, decoded or not. Rows of one batch get consecutive
    numbers in time order. Expired rows keep their place until they are the majority; then the
    store is compacted and rows are numbered anew.
    """

    def __init__(self, stream: StreamExec, kept: Collection[int], codebook: Codebook) -> None:
        """Hold the columns `kept` of the stream; all others are dropped on entry."""
        self._stream = stream
        self.kept = sorted({*kept, stream.time})
        self.codebook = codebook
        self._chunks: list[dict[int, pa.Array]] = []
        self._lanes: dict[tuple[Compute, int], Lane] = {}
        self._list_lanes: dict[tuple[str, int], ListLane] = {}
        self._times = Growing(np.empty(0, np.int64))
        self._weights: Growing | None = None
        self._places: tuple[Growing, Growing] | None = None
        self.size = 0
        self.null_time = 0

    @property
    def times(self) -> Ints:
        """Time of every row, in microseconds."""
        return self._times.values

    @property
    def weights(self) -> Floats | None:
        """How many rows each row stands for, where a strategy dropped some; None if all stand for one."""
        return None if self._weights is None else self._weights.values

    def weigh(self, rows: Ints, factor: float | Floats) -> None:
        """Let rows stand for `factor` times as many."""
        if len(rows) and np.any(factor != 1):
            if self._weights is None:
                self._weights = Growing(np.ones(self.size))
            self._weights.values[rows] *= factor

    @property
    def places(self) -> tuple[Ints, Ints]:
        """Of every row its rank in its stream, and how many of the other stream came before it, if known."""
        if self._places is None:
            self._places = (Growing(np.zeros(self.size, np.int64)), Growing(np.zeros(self.size, np.int64)))
        ranks, before = self._places
        return ranks.values, before.values

    def place(self, rows: Ints, ranks: Ints, before: Ints) -> None:
        """Say where rows stand among all that came."""
        for known, values in zip(self.places, (ranks, before), strict=True):
            known[rows] = values

    def append(self, table: pa.Table | pa.RecordBatch) -> tuple[int, Ints]:
        """Add one batch; return the first row number and the sorted times of the new rows."""
        if table.num_columns != len(self._stream.columns):
            msg = (
                f"stream {self._stream.name!r}: expected {len(self._stream.columns)} columns "
                f"{self._stream.columns}, got {table.num_columns}"
            )
            raise ValueError(msg)
        columns = {c: self._clean(table.column(c), c) for c in self.kept}
        timed = validity(columns[self._stream.time])
        if timed is not None:
            self._refuse_or_count(int(len(timed) - timed.sum()))
            mask = pa.array(timed)
            columns = {c: array.filter(mask) for c, array in columns.items()}
        times = decode_times(columns[self._stream.time], self._stream.types[self._stream.time])
        if not is_sorted(times):
            order = times.argsort(kind="stable")
            times = times.take(order)
            indices = pa.array(order)
            columns = {c: array.take(indices) for c, array in columns.items()}
        start = self.size
        self._enter(columns, times)
        return start, times

    def _enter(self, columns: dict[int, pa.Array], times: Ints) -> None:
        if len(times):
            self._push(columns)
            self._times.extend(times)
            if self._weights is not None:
                self._weights.extend(np.ones(len(times)))
            for places in self._places or ():
                places.extend(np.zeros(len(times), np.int64))
            self.size += len(times)

    def snapshot(self, rows: Ints) -> pa.Table:
        """The kept columns of some rows, and what each of them stands for, to be restored later."""
        columns = {str(c): self.take(c, rows) for c in self.kept}
        weights = self.weights
        if weights is not None and len(rows) and (own := weights.take(rows)).max() != 1:
            columns[_WEIGHT] = pa.array(own)
        if self._places is not None:
            columns |= {
                name: pa.array(own.take(rows)) for name, own in zip(_PLACES, self.places, strict=True)
            }
        return pa.table(columns)

    def restore(self, table: pa.Table) -> tuple[int, Ints]:
        """Add rows of a snapshot, whose times ascend; return the first row number and the times."""
        columns = {c: self._clean(table.column(str(c)), c) for c in self.kept}
        times = decode_times(columns[self._stream.time], self._stream.types[self._stream.time])
        start = self.size
        self._enter(columns, times)
        rows = np.arange(start, self.size)
        if _WEIGHT in table.column_names:
            self.weigh(rows, table.column(_WEIGHT).to_numpy())
        if _PLACES[0] in table.column_names:
            self.place(rows, *(table.column(name).to_numpy() for name in _PLACES))
        return start, times

    def _clean(self, column: pa.Array | pa.ChunkedArray, number: int) -> pa.Array:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        array = normalise(column, self._stream.types[number])
        known = self._chunks[0][number].type if self._chunks else array.type
        return array if array.type == known else array.cast(known)

    def _refuse_or_count(self, nulls: int) -> None:
        if self._stream.strict_time:
            raise NullTimeError(self._stream.name, self._stream.columns[self._stream.time], nulls)
        self.null_time += nulls

    def _push(self, columns: dict[int, pa.Array]) -> None:
        """Add a chunk, merging neighbours of similar size: few chunks, each row copied rarely."""
        chunks = self._chunks
        chunks.append(columns)
        time = self._stream.time
        while len(chunks) > 1 and len(chunks[-2][time]) < 2 * len(chunks[-1][time]):
            last, previous = chunks.pop(), chunks.pop()
            chunks.append({c: pa.concat_arrays([previous[c], last[c]]) for c in self.kept})

    def arrow(self, column: int, start: int = 0) -> pa.ChunkedArray:
        """Arrow values of a column from row `start` on."""
        return pa.chunked_array([chunk[column] for chunk in self._chunks]).slice(start)

    def take(self, column: int, rows: Ints) -> pa.Array:
        """Arrow values of a column at the given rows."""
        if len(self._chunks) == 1:
            return self._chunks[0][column].take(pa.array(rows))
        taken = self.arrow(column).take(pa.array(rows))
        return taken.chunk(0) if taken.num_chunks == 1 else pa.concat_arrays(taken.chunks)

    def values(self, column: int) -> Vector:
        """A column as the evaluator reads it: words as codes."""
        return self.lane(self.codebook.values, column)

    def codes(self, column: int) -> Vector:
        """A column as 64-bit equality codes."""
        return self.lane(self.codebook.encode, column)

    def lane(self, compute: Compute, column: int) -> Vector:
        """A column in the form that `compute` gives it, computed once per row."""
        lane = self._lanes.setdefault((compute, column), Lane())
        if lane.size < self.size:
            for chunk in self.arrow(column, lane.size).chunks:
                if len(chunk):
                    lane.extend(compute(chunk, self._stream.types[column]))
        return lane.vector

    def lists(self, kind: str, column: int) -> Lists:
        """A column of arrays or maps as `sets`, `maps` or `vectors`, computed once per row."""
        type_ = self._stream.types[column]
        lane = self._list_lanes.get((kind, column))
        if lane is None:
            lane = self._list_lanes[kind, column] = ListLane(empty_lists(kind, type_))
        if lane.size < self.size:
            for chunk in self.arrow(column, lane.size).chunks:
                if len(chunk):
                    lane.extend(FORMS[kind](chunk, type_, self.codebook))
        return lane.lists

    def compact(self, rows: Ints) -> None:
        """Keep only the given rows, in this order; they become rows 0, 1, 2, …."""
        kept = {c: self.take(c, rows) for c in self.kept} if len(rows) else {}
        self._chunks = [kept] if kept else []
        self._times = Growing(self.times.take(rows))
        weights = None if self.weights is None else self.weights.take(rows)
        self._weights = None if weights is None or (weights == 1).all() else Growing(weights)
        if self._places is not None:
            ranks, before = self.places
            self._places = (Growing(ranks.take(rows)), Growing(before.take(rows)))
        self.size = len(rows)
        self.forget()

    def forget(self) -> None:
        """Drop decoded columns; they are decoded again when needed."""
        self._lanes.clear()
        self._list_lanes.clear()
