"""How far a micro-batch is, before anybody knows what the machine can do.

Where z follows the load, the driver decides after the first micro-batches. Until then a host joins
everything, but a batch that would take far too long is cut short: nobody would learn anything before its
end. Effort is counted, not timed, so that a batch that is repeated is cut at the same place.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sparkshed.engine.statistics import Statistics

#: Effort of a batch beyond which a host sheds: some seconds of comparisons, each of which counts as one.
ENOUGH = 3e8
#: Effort of one result on its way out.
_RESULT = 30
_LEAST_SHARE = 1e-4
#: A batch that will take less than this share of the effort need not be watched.
_LIGHT = 0.25


def effort_of(counted: Statistics) -> float:
    """What so much work and so many results cost, in comparisons."""
    return float(counted.work + (_RESULT - 1) * counted.results)


def is_light(rows: int, per_row: float) -> bool:
    """Whether so many rows are far from too much, if they cost what rows of the last batch did."""
    return 0 < per_row * rows <= _LIGHT * ENOUGH


class Progress:
    """How far a micro-batch is, in rows and in effort."""

    def __init__(self, rows: int, *, filling: bool) -> None:
        """Take the number of rows of the batch; `filling` if windows were empty before it."""
        self._rows = rows
        self._filling = filling
        self._done = 0
        self._spent = self._full = 0.0

    def add(self, portion: Mapping[int, pa.Table], effort: float, throttle: float) -> None:
        """A portion was joined, with a share of the work."""
        self._done += sum(table.num_rows for table in portion.values())
        self._spent += effort
        self._full += effort / throttle

    @property
    def budget(self) -> float:
        """The share of the work that the rest of the batch may have."""
        done = self._done / self._rows if 0 < self._done < self._rows else 1.0
        # While windows fill, later rows meet more of them.
        rest = self._full / done ** (2 if self._filling else 1) - self._full
        left = ENOUGH - self._spent
        return 1.0 if rest <= max(left, 0.0) else max(_LEAST_SHARE, left / rest)

    @property
    def share(self) -> float:
        """The share of the work that was done."""
        return min(1.0, self._spent / self._full) if self._full > 0 else 1.0

    @property
    def per_row(self) -> float:
        """What a row cost, or would have cost with all of the work; 0 if there was none."""
        return self._full / self._done if self._done else 0.0
