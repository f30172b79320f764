"""Everything is joined, and nothing is learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import EVERYTHING, Reach
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.protocol import Arranged, Batch, Held, Leaving, Part
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec


class Exact:
    """The join without shedding; the base of strategies that change a part of it."""

    holds = False

    def __init__(self, configuration: Configuration) -> None:
        """Start with a configuration; all that matters of it here are the orders."""
        self.configuration = configuration
        self.completeness = Completeness()
        self._buckets = 0
        self.tally = Tally.empty(len(configuration.orders), 0)
        self._delivered = 0

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""
        self._spec = spec
        self.stores = stores

    def configure(self, configuration: Configuration) -> None:
        """Follow a new configuration from the next micro-batch on."""
        self.configuration = configuration

    def arriving(self, batch: Mapping[int, pa.Table | pa.RecordBatch | None]) -> None:
        """Nothing is decided in advance."""

    def admit(self, stream: int, count: int) -> Bools | None:
        """Every row enters."""
        return None

    def arrange(self, batch: Batch) -> Arranged:
        """All rows are joined at once."""
        return Arranged((batch,))

    def entered(self, stream: int, rows: Ints) -> None:
        """Nothing is kept about rows."""

    def reaches(self, origin: int) -> Mapping[int, Sequence[Reach]]:
        """Everything in time."""
        return dict.fromkeys(self.configuration.orders[origin], (Reach(),))

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Every row probes everything."""
        yield Part(rows, EVERYTHING, self.deliver)

    def spent(self, origin: int, work: int) -> None:
        """What the rows of a stream cost."""
        self.tally.directions[origin].work += work

    def release(self, held: Sequence[Held]) -> Iterator[Held]:
        """Nothing waits."""
        return iter(())

    def leaving(self) -> Sequence[Leaving]:
        """Rows stay until they expire."""
        return ()

    def charges(self) -> Sequence[int]:
        """All work is counted by the operator."""
        return ()

    def close(self) -> None:
        """No row waits."""

    def take(self) -> Tally:
        """What was learned since the last call."""
        taken, self.tally = self.tally, Tally.empty(len(self.tally.directions), self._buckets)
        return taken

    def settle(self) -> Completeness:
        """Everything was delivered."""
        batch = Completeness(self._delivered)
        self._delivered = 0
        self.completeness += batch
        return batch

    def expired(self, stream: int, rows: Ints) -> None:
        """Nothing is kept about rows."""

    def notes(self, order: Sequence[Ints]) -> bytes | None:
        """Nothing."""
        return None

    def recall(self, notes: bytes, order: Sequence[Ints]) -> None:
        """Nothing."""

    def renumbered(self, stream: int, rows: Ints) -> None:
        """Nothing is kept about rows."""

    def deliver(self, results: Partials | Candidates) -> None:
        """Count results that are emitted."""
        self._delivered += results.size
