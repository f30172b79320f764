"""The front end's questions, answered by a Spark session."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkshed.predicates import find_predicate
from sparkshed.sql.catalog import Field
from sparkshed.sql.expr import PythonPredicate

#: Runs a text as `spark.sql` did before sparkshed was enabled, with the statement's parameters.
RunSql = Callable[[str], DataFrame]

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = datetime.date(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


class SparkCatalog:
    """Analyses queries in a session; remembers the answers for one statement."""

    def __init__(self, session: SparkSession, run: RunSql) -> None:
        """Take the session and the way to run plain SQL in it."""
        self._run = run
        self._schemas: dict[str, tuple[Field, ...]] = {}
        self.case_sensitive = _is_true(session, "spark.sql.caseSensitive")
        self.ansi = _is_true(session, "spark.sql.ansi.enabled")
        self.null_has_size = not self.ansi and _is_true(session, "spark.sql.legacy.sizeOfNull")
        self.time_zone = str(session.conf.get("spark.sql.session.timeZone"))

    def schema(self, query: str) -> tuple[Field, ...]:
        """Columns of a query."""
        if query not in self._schemas:
            fields = self._run(query).schema.fields
            self._schemas[query] = tuple(Field(f.name, f.dataType.simpleString()) for f in fields)
        return self._schemas[query]

    def deterministic(self, query: str) -> bool:
        """Whether Spark calls the query deterministic."""
        return bool(self._run(query)._jdf.queryExecution().analyzed().deterministic())

    def above_join(self, query: str) -> tuple[str, ...]:
        """The nodes above the uppermost join of the analysed plan."""
        node, names = self._run(query)._jdf.queryExecution().analyzed(), []
        while (name := node.getClass().getSimpleName()) != "Join" and node.children().size():
            names.append(name)
            # Queries of a WITH clause come before the one that uses them.
            node = node.children().last()
        return tuple(names)

    def resolves(self, query: str) -> bool:
        """Whether Spark's analyser takes the query."""
        try:
            self.schema(query)
        except PySparkException:
            return False
        return True

    def constants(self, query: str) -> tuple[object, ...]:
        """The one row of a query without relations, in physical form."""
        frame = self._run(query)
        items = [
            f"unix_micros({field.name}) AS {field.name}"
            if field.dataType.simpleString() == "timestamp"
            else field.name
            for field in frame.schema.fields
        ]
        (row,) = frame.selectExpr(*items).collect()
        return tuple(physical_value(value) for value in row)

    def predicate(self, name: str) -> PythonPredicate | None:
        """The Python predicate of that name."""
        return find_predicate(name)


def _is_true(session: SparkSession, setting: str) -> bool:
    return str(session.conf.get(setting)).strip().lower() == "true"


def physical_value(value: Any) -> object:
    """A collected value as the engine stores it: times in microseconds, dates in days.

    >>> physical_value(datetime.timedelta(seconds=20)), physical_value(datetime.date(1970, 1, 3))
    (20000000, 2)
    """
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    if isinstance(value, datetime.date):
        return (value - _EPOCH_DAY).days
    if isinstance(value, datetime.timedelta):
        return value // _MICROSECOND
    if isinstance(value, bytearray):
        return bytes(value)
    return value
