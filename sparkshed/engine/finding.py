"""What every kernel gives: candidate pairs for a chunk of partial results, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from sparkshed.engine.arrays import Bools, Ints, Picks
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.windows import Windows


class Pairs(NamedTuple):
    """Candidates: partial result `picks.numbers[n]` with row `rows[n]`.

    With `edge` their time is still to be checked; `settled` candidates need no verification.
    """

    picks: Picks
    rows: Ints
    edge: bool
    settled: bool = False


class Finder(Protocol):
    """One kernel bound to a target stream and to the work counters of a direction."""

    def find(self, partials: Partials, windows: Windows, low: Ints, high: Ints) -> Iterator[Pairs]:
        """Candidates of every partial result n with time in `[low[n], high[n]]`."""

    def verify(self, candidates: Candidates) -> Bools | None:
        """Which of the candidates that are not settled the kernel's own condition accepts; None if all."""


def gathered(found: Iterable[Pairs], limit: int) -> Iterator[Pairs]:
    """The same pairs in fewer, larger pieces of at most `limit`, where time is not to be checked."""
    held: dict[bool, list[Pairs]] = {True: [], False: []}
    sizes = {True: 0, False: 0}
    for pairs in found:
        kind = pairs.settled
        if held[kind] and sizes[kind] + len(pairs.rows) > limit:
            yield _together(held[kind])
            held[kind], sizes[kind] = [], 0
        held[kind].append(pairs)
        sizes[kind] += len(pairs.rows)
    for parts in held.values():
        if parts:
            yield _together(parts)


def _together(parts: list[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    picks = np.concatenate([part.picks.numbers for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    return Pairs(Picks(picks), rows, edge=False, settled=parts[0].settled)


def window_range(windows: Windows, low: Ints, high: Ints, alive: Bools | None) -> tuple[Ints, Ints]:
    """The windows `[begin, end)` that each time range touches; none where not alive."""
    first, last = windows.extents
    begin: Ints = last.searchsorted(low)
    end: Ints = first.searchsorted(high, "right")
    np.maximum(end, begin, out=end)
    return begin, end if alive is None else np.where(alive, end, begin)
