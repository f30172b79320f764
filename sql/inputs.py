"""Input columns of the streams: what Spark computes below the join."""

from __future__ import annotations

from dataclasses import dataclass

from sparkshed.sql.expr import Col


@dataclass(frozen=True, slots=True)
class Input:
    """One column that a stream brings: its SQL over the relation, and its type."""

    sql: str
    type: str


class Inputs:
    """Collects the inputs of every stream; the same text is brought once."""

    def __init__(self, streams: int) -> None:
        """Start with no columns."""
        self._columns: list[dict[str, Input]] = [{} for _ in range(streams)]

    def column(self, stream: int, sql: str, type_: str) -> Col:
        """The column that computes `sql`, added if new."""
        columns = self._columns[stream]
        columns.setdefault(sql, Input(sql, type_))
        return Col(stream, list(columns).index(sql), type_, sql.replace("`", ""))

    def sizes(self) -> tuple[int, ...]:
        """How many columns each stream has, to come back to with :meth:`shrink`."""
        return tuple(map(len, self._columns))

    def shrink(self, sizes: tuple[int, ...]) -> None:
        """Forget the columns that were added since :meth:`sizes` was called."""
        for columns, size in zip(self._columns, sizes, strict=True):
            for sql in list(columns)[size:]:
                del columns[sql]

    def of(self, stream: int) -> tuple[Input, ...]:
        """Columns of a stream, in order."""
        return tuple(self._columns[stream].values())
