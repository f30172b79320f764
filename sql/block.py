"""What the front end hands to the planner: one join block, fully understood."""

from __future__ import annotations

from dataclasses import dataclass

from sparkshed.sql.bounds import TimeBound
from sparkshed.sql.hint import ShedHint
from sparkshed.sql.inputs import Input
from sparkshed.sql.predicate import Predicate

#: Output column of an operator with several joins: the number of the join that a result is of.
JOIN = "__shed_join"


@dataclass(frozen=True, slots=True)
class Payload:
    """A column that the rest of the query reads: field `name`, brought by input `column`."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class Stream:
    """One relation of the join.

    Attributes:
        name: The name it goes by in the query.
        relation: Its text in FROM.
        source: The same without the alias.
        filters: Conditions on it alone; Spark applies them below the join.
        inputs: Columns that Spark computes for the operator.
        time: Number of the input that is the row's time, None while it has no time bound.
        time_text: The time column as the user wrote it.
        strict_time: Only greatest/least bound it, so a NULL time would join without bound.
        payload: Columns that the rest of the query reads.
    """

    name: str
    relation: str
    source: str
    filters: tuple[str, ...]
    inputs: tuple[Input, ...]
    time: int | None
    time_text: str | None
    strict_time: bool
    payload: tuple[Payload, ...]


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """The join block of one hinted SELECT.

    Attributes:
        hint: The SHED hint.
        with_: The WITH clause (or nothing) that the relations need in front of them.
        streams: The relations.
        bounds: Time bounds as written.
        predicates: Conditions over several streams that the engine evaluates.
        residual: Conditions that Spark evaluates on the operator's output.
        ansi: Whether arithmetic errors are errors, as in the session.
    """

    hint: ShedHint
    with_: str
    streams: tuple[Stream, ...]
    bounds: tuple[TimeBound, ...]
    predicates: tuple[Predicate, ...]
    residual: tuple[str, ...]
    ansi: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams."""
        return tuple(stream.name for stream in self.streams)
