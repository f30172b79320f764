"""The one protocol behind which every strategy stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import Probing
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
    """Results that wait for the end of their micro-batch; `origin` has the row that arrived last."""

    origin: int
    results: Partials


#: Rows of a micro-batch by stream.
Batch = Mapping[int, pa.Table]


class Arranged(NamedTuple):
    """Rows that are joined now, batch by batch, and how many of each stream were dropped for good."""

    batches: Sequence[Batch]
    dropped: Sequence[int] = ()


class Strategy(Protocol):
    """Decides about rows and probes; the operator does the joining.

    For each micro-batch the operator calls :meth:`admit` for every stream, and :meth:`arrange` for all. For
    each batch that comes out of that it calls :meth:`entered`, :meth:`parts` for every direction,
    :meth:`release`, :meth:`leaving` when the new rows are in the windows, :meth:`charges` and :meth:`settle`.

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

    def admit(self, stream: int, count: int) -> Bools | None:
        """Which of the new rows of a stream enter the join; None if all do."""

    def arrange(self, batch: Batch) -> Arranged:
        """The rows to be joined now, of those that were admitted and those that waited."""

    def entered(self, stream: int, rows: Ints) -> None:
        """The row numbers of the new rows that entered."""

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """How the new rows of a stream are joined; together the parts have every row at most once."""

    def spent(self, origin: int, work: int) -> None:
        """The rows of a stream are joined: what that cost."""

    def release(self, held: Sequence[Held]) -> Iterator[Partials]:
        """The results of a micro-batch that are emitted, of those that had to wait."""

    def leaving(self) -> Sequence[Ints]:
        """Rows of each stream that leave the windows, now that the micro-batch is joined."""

    def charges(self) -> Sequence[int]:
        """Work units of each stream's rows in the micro-batch that the operator does not count itself."""

    def take(self) -> Tally:
        """What was learned since the last call."""

    def settle(self) -> Completeness:
        """The micro-batch is joined: what share of its results was delivered."""

    def renumbered(self, stream: int, rows: Ints) -> None:
        """The rows of a stream were numbered anew: row n was row `rows[n]`."""

    def notes(self) -> bytes | None:
        """What must not be forgotten between micro-batches besides the windows; None if there is nothing."""

    def recall(self, blob: bytes) -> None:
        """Go on from notes, with the windows restored."""
