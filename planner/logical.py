"""The logical plan: what is joined and what is known about it, before any choice of how."""

from __future__ import annotations

from dataclasses import dataclass

from sparkshed.planner.statistics import Statistics
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.bounds import BoundMatrix
from sparkshed.sql.hint import ShedHint
from sparkshed.sql.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Implied:
    """A predicate that others imply: it may guide the join, and never needs a check."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class ShedJoin:
    """A windowed join of two or more streams.

    The rules fill in what the front end does not know: the closed bounds, implied and merged
    predicates, the basic window and the join orders.
    """

    block: JoinBlock
    statistics: Statistics
    predicates: tuple[Predicate, ...]
    implied: tuple[Implied, ...] = ()
    bounds: BoundMatrix | None = None
    basic: int | None = None
    orders: tuple[tuple[int, ...], ...] = ()
    streaming: bool = False

    def __post_init__(self) -> None:
        if len(self.block.streams) < 2:
            msg = "a join needs two or more streams"
            raise ValueError(msg)

    @staticmethod
    def of(block: JoinBlock, statistics: Statistics, *, streaming: bool = False) -> ShedJoin:
        """The plan as the SQL says it."""
        return ShedJoin(block, statistics, block.predicates, streaming=streaming)

    @property
    def sheds(self) -> bool:
        """Whether less than all the work may be done; in streaming that can depend on the load."""
        if self.hint.memory is not None or self.hint.rows is not None:
            # Windows with a limit are the strategy's, with all the work, too.
            return True
        if self.hint.strategy == "exact":
            return False
        return self.streaming if self.hint.budget is None else self.hint.budget < 1 or self.streaming

    @property
    def hint(self) -> ShedHint:
        """The SHED hint."""
        return self.block.hint

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams."""
        return self.block.names

    @property
    def closed(self) -> BoundMatrix:
        """The closed bounds, once their rule has run."""
        if self.bounds is None:
            msg = "close_bounds has not run"
            raise ValueError(msg)
        return self.bounds

    @property
    def linking(self) -> tuple[Predicate, ...]:
        """All predicates that may guide the join, implied ones included."""
        return (*self.predicates, *(implied.predicate for implied in self.implied))
