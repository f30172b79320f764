"""Arrays that grow: appending costs amortised constant time per element."""

from __future__ import annotations

import numpy as np

from sparkshed.engine.arrays import AnyArray, Bools, Vector


class Growing:
    """An array with room to grow, so that appending costs amortised constant time."""

    def __init__(self, values: AnyArray) -> None:
        """Adopt the first values without copying them."""
        self._room = values
        self._size = len(values)

    def extend(self, values: AnyArray) -> None:
        """Append values."""
        if not len(values):
            return
        size = self._size + len(values)
        if size > len(self._room):
            room = np.empty(max(size, 2 * self._size), self._room.dtype)
            room[: self._size] = self._room[: self._size]
            self._room = room
        self._room[self._size : size] = values
        self._size = size

    @property
    def values(self) -> AnyArray:
        """What has been appended so far."""
        return self._room[: self._size]


class Mask:
    """One flag per row; no array at all as long as every row has the usual flag."""

    def __init__(self, usual: bool) -> None:
        """Start empty."""
        self._usual = usual
        self._flags: Growing | None = None
        self._size = 0

    def extend(self, flags: Bools | None, count: int) -> None:
        """Append the flags of `count` rows; None if all are usual."""
        if flags is not None and self._flags is None:
            self._flags = Growing(np.full(self._size, self._usual))
        if self._flags is not None:
            self._flags.extend(np.full(count, self._usual) if flags is None else flags)
        self._size += count

    @property
    def flags(self) -> Bools | None:
        """All flags, or None."""
        return None if self._flags is None else self._flags.values


class Lane:
    """A numpy form of one column that grows with its store."""

    def __init__(self) -> None:
        """Start empty."""
        self._values = Growing(np.empty(0))
        self._valid = Mask(usual=True)
        self.size = 0

    def extend(self, more: Vector) -> None:
        """Append the next rows."""
        if self.size == 0:
            self._values = Growing(more.values)
        else:
            self._values.extend(more.values)
        self._valid.extend(more.valid, len(more.values))
        self.size += len(more.values)

    @property
    def vector(self) -> Vector:
        """All rows."""
        return Vector(self._values.values, self._valid.flags)
