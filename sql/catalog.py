"""What the front end asks of Spark, as a protocol, so that it knows no session."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from sparkshed.sql.expr import PythonPredicate

_OFFSET = r"[+-]\d{1,2}(:?\d{2})?(:?\d{2})?"
_FIXED_ZONE = re.compile(rf"Z|UTC|GMT|UT|Etc/\w+([+-]\d+)?|(UTC|GMT|UT)?{_OFFSET}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a relation: its name and Spark's simple type name."""

    name: str
    type: str


class Catalog(Protocol):
    """Spark, as far as the front end needs it: every query is analysed, never guessed."""

    case_sensitive: bool
    ansi: bool
    time_zone: str
    #: Whether `size(NULL)` is -1 instead of NULL.
    null_has_size: bool

    def schema(self, query: str) -> tuple[Field, ...]:
        """Columns of a query; raises Spark's own error when it does not resolve."""

    def deterministic(self, query: str) -> bool:
        """Whether the query gives the same answer each time it is run on the same rows."""

    def above_join(self, query: str) -> tuple[str, ...]:
        """What Spark does to the rows of the uppermost join of a query, from the last step to the first."""

    def resolves(self, query: str) -> bool:
        """Whether Spark understands the query."""

    def constants(self, query: str) -> tuple[object, ...]:
        """The one row of a query without relations, in physical form (see :class:`Lit`)."""

    def predicate(self, name: str) -> PythonPredicate | None:
        """The Python predicate of that name, in any case; None for other functions."""


def is_fixed_zone(zone: str) -> bool:
    """Whether the zone never changes its offset, so that a day is always 24 hours.

    >>> is_fixed_zone("UTC"), is_fixed_zone("+02:00"), is_fixed_zone("Europe/Paris")
    (True, True, False)
    """
    return _FIXED_ZONE.fullmatch(zone) is not None
