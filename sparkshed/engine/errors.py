"""What can go wrong while the operator runs."""

from __future__ import annotations

from collections.abc import Sequence

from sparkshed.sql.errors import listing


class EngineError(Exception):
    """Base of the engine's own errors."""


class NullTimeError(EngineError):
    """A row without a time reached a stream that cannot drop it silently."""

    def __init__(self, stream: str, column: str, rows: int) -> None:
        """Name the stream, its time column and the predicate that avoids the error."""
        name = column if "." in column else f"{stream}.{column}"
        super().__init__(
            f"stream {stream!r}: {rows} row(s) have a NULL time in column {column!r}. greatest() and least() "
            "skip NULLs, so SQL would join such a row without any time bound, and no window can hold it. "
            f"Fix: add `{name} IS NOT NULL` to WHERE"
        )
        self.stream = stream
        self.column = column
        self.rows = rows

    def __reduce__(self) -> tuple[type[NullTimeError], tuple[str, str, int]]:
        """Survive the trip from a worker process."""
        return type(self), (self.stream, self.column, self.rows)


class EvaluationError(EngineError, ArithmeticError):
    """An expression failed on a row; the message starts with Spark's error class in brackets."""


class CheckpointError(EngineError):
    """The state of a host was written by another query."""

    def __init__(self, changed: Sequence[str], hosts: str) -> None:
        """Name what differs, and the routing and number of hosts that wrote it."""
        super().__init__(
            f"the checkpoint was written by another query, which differs in its {listing(changed)}. "
            "Windows of one query mean nothing to another. Fix: give this query a checkpointLocation of its "
            "own, or run the statement that the checkpoint was made by"
            + (f", with 'diffuse={hosts}' in the hint" if "hosts" in changed else "")
        )
        self.changed = tuple(changed)
        self.hosts = hosts

    def __reduce__(self) -> tuple[type[CheckpointError], tuple[tuple[str, ...], str]]:
        """Survive the trip from a worker process."""
        return type(self), (self.changed, self.hosts)
