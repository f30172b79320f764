"""Aux windows: rows that wait in front of the join until it is known whether a probe is worth its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.fronts import Tables, cut, joined
from sparkshed.engine.waiting import Figures, chances, pushed, standing
from sparkshed.engine.wire import from_blob, to_blob

#: What random numbers are for: rows with the yield where shedding ends, by stream.
_REAR = 2
#: One row in so many is remembered when it leaves, and how many of these, in windows.
_EVERY, _REMEMBERED = 4, 2

_NONE = np.empty(0, np.int64)


class AuxWindows:
    """The rows of two streams that wait, in the order of arrival.

            remembered, every fourth         wait, n rows of a stream at most
        ┌──────────────────────────────┬──────────────────────────────────────┐
        8 n rows ago                   oldest: probes iff enough of all       newest
                                       these have a lower yield

    Yields rise and fall slowly, because a window changes slowly. The oldest of some rows is the best or the
    worst of them more often than others are, then. So it is compared with rows on both sides.

    Attributes:
        figures: What is known of the rows.
        tables: The rows themselves, by stream.
    """

    def __init__(self, rows: int) -> None:
        """Nobody waits.

        Args:
            rows: n, how many rows of a stream wait at most.
        """
        self._rows = rows
        self.figures = Figures.none()
        self.tables: Tables = [None, None]
        self._left: list[Ints] = [_NONE] * 2

    def add(self, figures: Figures, tables: Sequence[pa.Table | None]) -> None:
        """Let new rows wait behind the others."""
        self.figures = self.figures.then(figures)
        self.tables = [joined(pair) for pair in zip(self.tables, tables, strict=True)]

    def of(self, stream: int) -> Figures:
        """What is known of the rows of one stream."""
        return self.figures.take(np.flatnonzero(self.figures.streams == stream))

    def pushed_out(self, rear: Sequence[float], seed: int, *, all_of_them: bool) -> tuple[Figures, Bools]:
        """The rows that were pushed out by later ones, and which of them probe.

        Args:
            rear: k_r of each stream. Where nothing is shed, no row waits.
            seed: Of random choices.
            all_of_them: Whether no more rows will come.
        """
        size = len(self.figures.streams)
        ends = pushed(self.figures.streams, self._rows) if max(rear) > 0 else np.full(size, size)
        leaving = size if all_of_them or max(rear) <= 0 else int((ends < size).sum())
        probes = np.ones(leaving, bool)
        for s, share in enumerate(rear):
            own = np.flatnonzero(self.figures.streams == s)
            mine = own[own < leaving]
            ranks, found = self.figures.ranks[mine], self.figures.found[own]
            remembered = ranks % _EVERY == 0
            former = np.concatenate([self._left[s], found[: len(mine)][remembered]])
            if share > 0:
                before = len(self._left[s]) + np.cumsum(remembered) - remembered
                lower, equal, count = self._compared(
                    found, own.searchsorted(ends[mine], "right"), former, before
                )
                probes[mine] = lower + chances(seed, _REAR + s, ranks) * equal >= share * count
            self._left[s] = former[-_REMEMBERED * self._rows :]
        gone = self.figures.take(slice(0, leaving))
        self.figures = self.figures.take(slice(leaving, None))
        return gone, probes

    def _compared(self, found: Ints, last: Ints, former: Ints, before: Ints) -> tuple[Ints, Ints, Ints]:
        """How many rows of all that a row is compared with have a lower yield, an equal one, and any.

        Args:
            found: Yields of the rows of a stream that wait.
            last: Where the aux window of each row ends that leaves.
            former: Yields that are remembered, and are to be.
            before: How many of these left before each row.
        """
        here = np.arange(len(last))
        begin = np.maximum(0, before - _REMEMBERED * self._rows)
        lower, equal = standing(found, here, last)
        more, alike = standing(former, begin, before, found)
        return lower + more, equal + alike, last - here + before - begin

    def take(self, stream: int, rows: int) -> pa.Table | None:
        """The first rows of a stream, which wait no longer."""
        table, self.tables[stream] = cut(self.tables[stream], rows)
        return table

    def to_blobs(self) -> dict[str, bytes | None]:
        """What must not be forgotten."""
        queue = pa.table(dict(zip(Figures._fields, self.figures, strict=True)))
        rows = {f"rows{s}": None if own is None else to_blob(own) for s, own in enumerate(self.tables)}
        left = {f"left{s}": to_blob(pa.table({"found": own})) for s, own in enumerate(self._left)}
        return {"queue": to_blob(queue), **rows, **left}

    def recall(self, blobs: Mapping[str, bytes | None]) -> None:
        """The rows that waited, again."""
        assert blobs["queue"] is not None
        queue = from_blob(blobs["queue"])
        self.figures = Figures(*(queue.column(name).to_numpy() for name in Figures._fields))
        self.tables = [None if (own := blobs[f"rows{s}"]) is None else from_blob(own) for s in (0, 1)]
        # Earlier versions remembered none.
        left = [blobs.get(f"left{s}") for s in (0, 1)]
        self._left = [_NONE if own is None else from_blob(own).column("found").to_numpy() for own in left]
