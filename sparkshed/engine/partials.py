"""Partial results and the candidates that extend them by one more stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import INT64_MAX, INT64_MIN, Ints, Picks, Vector, counting, shift
from sparkshed.engine.lists import Lists
from sparkshed.engine.store import RowStore
from sparkshed.sql.expr import Col


class Partials:
    """Combinations of rows, one array of row numbers per bound stream; column by column."""

    __slots__ = ("_memo", "_stores", "rows", "size")

    def __init__(self, stores: Sequence[RowStore], rows: Mapping[int, Ints]) -> None:
        """Combine `rows[stream][n]` of every bound stream into partial result n."""
        self._stores = stores
        self._memo: dict[tuple[int, int], Vector] = {}
        self.rows = rows
        self.size = len(next(iter(rows.values())))

    def column(self, stream: int, column: int) -> Vector:
        """Values of a column for each partial result."""
        key = (stream, column)
        if key not in self._memo:
            self._memo[key] = self._stores[stream].values(column).take(self.rows[stream])
        return self._memo[key]

    def payload(self, stream: int, column: int) -> pa.Array:
        """Arrow values of a column for each partial result."""
        return self._stores[stream].take(column, self.rows[stream])

    def rows_of(self, stream: int) -> Ints:
        """Row numbers of a bound stream."""
        return self.rows[stream]

    def times(self, stream: int) -> Ints:
        """Row times of a bound stream."""
        return self._stores[stream].times.take(self.rows[stream])

    def reach(self, target: int, bounds: Sequence[Sequence[int | None]]) -> tuple[Ints, Ints]:
        """Earliest and latest time of another stream that every bound stream allows."""
        low = np.full(self.size, INT64_MIN)
        high = np.full(self.size, INT64_MAX)
        for stream in self.rows:
            times = self.times(stream)
            past, future = bounds[stream][target], bounds[target][stream]
            if past is not None:
                low = np.maximum(low, shift(times, -past)[0])
            if future is not None:
                high = np.minimum(high, shift(times, future)[0])
        return low, high

    def select(self, places: Ints) -> Partials:
        """Only the given partial results."""
        return Partials(self._stores, {stream: rows.take(places) for stream, rows in self.rows.items()})

    def joined(self) -> Partials:
        """These, as :meth:`Candidates.joined` has it."""
        return self


class Candidates:
    """Partial result `picks.numbers[n]` extended by row `rows[n]` of stream `target`, to be checked."""

    __slots__ = ("_memo", "_partials", "_stores", "_target", "picks", "rows", "size")

    def __init__(
        self, stores: Sequence[RowStore], partials: Partials, target: int, picks: Picks, rows: Ints
    ) -> None:
        """Pair partial results with rows of the target."""
        self._stores = stores
        self._partials = partials
        self._target = target
        self._memo: dict[tuple[int, int], Vector] = {}
        self.picks = picks
        self.rows = rows
        self.size = len(rows)

    def column(self, column: Col) -> Vector:
        """Values of a column for each candidate."""
        key = (column.stream, column.column)
        if key not in self._memo:
            if column.stream == self._target:
                vector = self._stores[self._target].values(column.column).take(self.rows)
            else:
                vector = self._partials.column(*key).spread(self.picks)
            self._memo[key] = vector
        return self._memo[key]

    def lists(self, kind: str, column: Col) -> tuple[Lists, Ints]:
        """All lists of a column (`sets`, `maps` or `vectors`), and the row of each candidate."""
        return self._stores[column.stream].lists(kind, column.column), self.rows_of(column.stream)

    def arrow(self, column: Col) -> pa.Array:
        """Arrow values of a column for each candidate."""
        return self.payload(column.stream, column.column)

    def payload(self, stream: int, column: int) -> pa.Array:
        """Arrow values of a column for each candidate.

        Candidates of one partial result repeat its value, which is quicker than to look up every row.
        """
        if stream == self._target:
            return self._stores[stream].take(column, self.rows)
        heads = self._stores[stream].take(column, self._partials.rows[stream].take(self.picks.heads))
        return heads if self.picks.sizes is None else repeated(heads, self.picks.sizes)

    def rows_of(self, stream: int) -> Ints:
        """Row numbers of any bound stream or of the target."""
        return self.rows if stream == self._target else self.picks.of(self._partials.rows[stream])

    def select(self, rows: Ints) -> Candidates:
        """Only the given candidates."""
        return Candidates(
            self._stores, self._partials, self._target, self.picks.take(rows), self.rows.take(rows)
        )

    def joined(self) -> Partials:
        """The candidates as partial results with one more stream."""
        bound = {stream: self.picks.of(rows) for stream, rows in self._partials.rows.items()}
        return Partials(self._stores, {**bound, self._target: self.rows})


def repeated(array: pa.Array, sizes: Ints) -> pa.Array:
    """Each value of an Arrow array so many times."""
    width = array.type.bit_width if pa.types.is_primitive(array.type) else 0
    if width not in (32, 64) or array.null_count:
        return array.take(pa.array(counting(len(array)).repeat(sizes)))
    plain = array.view(pa.int32() if width == 32 else pa.int64())
    return pa.array(plain.to_numpy().repeat(sizes)).view(array.type)


def distinct(rows: Ints) -> tuple[Ints, Ints | None]:
    """The different rows and, for each input, the number of its row among them.

    None instead of numbers when looking each row up on its own is as good.
    """
    low, high = int(rows.min()), int(rows.max())
    if high - low >= 4 * len(rows):
        return rows, None
    seen = np.zeros(high - low + 1, np.bool_)
    places = rows - low
    seen[places] = True
    found = np.flatnonzero(seen)
    if 2 * len(found) > len(rows):
        return rows, None
    numbers: Ints = np.cumsum(seen, dtype=np.int64)
    numbers -= 1
    return found + low, numbers.take(places)
