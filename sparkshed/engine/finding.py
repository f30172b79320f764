"""What every kernel gives: candidate pairs for a chunk of partial results, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.windows import Windows


class Pairs(NamedTuple):
    """Candidates: partial result `picks[n]` with row `rows[n]`.

    With `edge` their time is still to be checked; `settled` candidates need no verification.
    """

    picks: Ints
    rows: Ints
    edge: bool
    settled: bool = False


class Finder(Protocol):
    """One kernel bound to a target stream and to the work counters of a direction."""

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Candidates of every partial result n with time in `[low[n], high[n]]`."""

    def verify(self, candidates: Candidates) -> Bools | None:
        """Which of the candidates that are not settled the kernel's own condition accepts; None if all."""


def window_range(windows: Windows, low: Ints, high: Ints, alive: Bools | None) -> tuple[Ints, Ints]:
    """The windows `[begin, end)` that each time range touches; none where not alive."""
    first, last = windows.extents
    begin: Ints = last.searchsorted(low)
    end: Ints = first.searchsorted(high, "right")
    np.maximum(end, begin, out=end)
    return begin, end if alive is None else np.where(alive, end, begin)
