"""The one protocol behind which every strategy stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import Probing, Reach
from sparkshed.engine.store import RowStore
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec


class Observer(Protocol):
    """Sees results on their way out."""

    def __call__(self, results: Partials | Candidates) -> object:
        """Some results of one part."""


class Part(NamedTuple):
    """New rows of a stream that are joined in the same way.

    `only` joins them with one other stream, and their results are not emitted: they are for learning.
    """

    rows: Ints
    probing: Probing
    observe: Observer | None = None
    only: int | None = None


class Held(NamedTuple):
    """Results of a join that wait for the end of the micro-batch; `origin` has the row that arrived last."""

    join: int
    origin: int
    results: Partials


class Leaving(NamedTuple):
    """Rows of a stream that leave the windows: those that are evicted, and those that are out of reach."""

    evicted: Ints
    past: Ints


#: Rows of a micro-batch by stream.
Batch = Mapping[int, pa.Table]


class Arranged(NamedTuple):
    """Rows that are joined now, batch by batch, and how many of each stream were dropped for good."""

    batches: Sequence[Batch]
    dropped: Sequence[int] = ()


class Strategy(Protocol):
    """Decides about rows and probes; the operator does the joining.

    For each micro-batch the operator calls :meth:`arriving`, :meth:`admit` for every stream, and
    :meth:`arrange` for all. For each batch that comes out of that it calls :meth:`entered`, :meth:`reaches`
    and :meth:`parts` for every direction, :meth:`release`, :meth:`leaving` when the new rows are in the
    windows, :meth:`charges` and :meth:`settle`.

    Attributes:
        configuration: What it does.
        tally: What was learned.
        completeness: What share of all results was delivered.
        holds: Whether results wait until the whole micro-batch is joined, because rows that arrived between
            theirs decide whether they still meet.
    """

    configuration: Configuration
    tally: Tally
    completeness: Completeness
    holds: bool

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""

    def configure(self, configuration: Configuration) -> None:
        """Follow a new configuration from the next micro-batch on."""

    def arriving(self, batch: Mapping[int, pa.Table | pa.RecordBatch | None]) -> None:
        """The rows of a micro-batch, before any of them is taken in."""

    def admit(self, stream: int, count: int) -> Bools | None:
        """Which of the new rows of a stream enter the join; None if all do."""

    def arrange(self, batch: Batch) -> Arranged:
        """The rows to be joined now, of those that were admitted and those that waited."""

    def entered(self, stream: int, rows: Ints) -> None:
        """The row numbers of the new rows that entered."""

    def reaches(self, origin: int) -> Mapping[int, Sequence[Reach]]:
        """What new rows of a stream may probe of each other stream: windows beyond that are not read."""

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """How the new rows of a stream are joined; together the parts have every row at most once."""

    def spent(self, origin: int, work: int) -> None:
        """The rows of a stream are joined: what that cost."""

    def release(self, held: Sequence[Held]) -> Iterator[Held]:
        """The results of a micro-batch that are emitted, of those that had to wait."""

    def leaving(self) -> Sequence[Leaving]:
        """Rows of each stream that leave the windows, now that the micro-batch is joined."""

    def charges(self) -> Sequence[int]:
        """Work units of each stream's rows in the micro-batch that the operator does not count itself."""

    def close(self) -> None:
        """No more rows will come, so that none need wait for them."""

    def take(self) -> Tally:
        """What was learned since the last call."""

    def settle(self) -> Completeness:
        """The micro-batch is joined: what share of its results was delivered."""

    def expired(self, stream: int, rows: Ints) -> None:
        """Rows of a stream left the windows because nothing that may still come can match them."""

    def notes(self, order: Sequence[Ints]) -> bytes | None:
        """What must be written down of the strategy between micro-batches; None if that is nothing.

        Args:
            order: The rows of each stream, in the order in which they are written down.
        """

    def recall(self, notes: bytes, order: Sequence[Ints]) -> None:
        """Go on from what was written down; the rows are there, in the same order."""

    def renumbered(self, stream: int, rows: Ints) -> None:
        """The rows of a stream were numbered anew: row n was row `rows[n]`."""
