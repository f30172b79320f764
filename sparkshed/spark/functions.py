"""Python predicates as UDFs of Spark sessions: what their names mean without the hint."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkshed.engine.python import apply_predicate
from sparkshed.predicates import forget_predicate, registered
from sparkshed.sql.errors import PredicateError
from sparkshed.sql.expr import PythonPredicate

_lock = threading.RLock()

#: Sessions that are told of new predicates at once, by identity, as long as they live.
_told: weakref.WeakValueDictionary[str, SparkSession] = weakref.WeakValueDictionary()

#: The predicates that each session has, by identity and name.
_installed: dict[str, dict[str, PythonPredicate]] = {}


def identity(session: SparkSession) -> str:
    """One string per session, whichever Python object stands for it."""
    return str(session._jsparkSession.sessionUUID())


def install(session: SparkSession) -> None:
    """Give the session all predicates that it lacks."""
    predicates = registered()
    if not predicates:
        return
    with _lock:
        has = _installed.setdefault(identity(session), {})
        for predicate in predicates:
            key = predicate.name.lower()
            if has.get(key) is predicate:
                continue
            problem = None if key in has else _problem(session, predicate.name)
            if problem is not None:
                forget_predicate(predicate.name)
                raise PredicateError(problem)
            session.udf.register(predicate.name, as_udf(predicate))
            has[key] = predicate


def keep_installed(session: SparkSession) -> None:
    """Give the session all predicates, and those to come as soon as they are registered."""
    with _lock:
        _told[identity(session)] = session
    install(session)


def stop_installing(session: SparkSession) -> None:
    """Undo :func:`keep_installed`; the session keeps the predicates that it has."""
    with _lock:
        _told.pop(identity(session), None)


def install_everywhere() -> None:
    """Give new predicates to the sessions that are kept up to date."""
    with _lock:
        sessions = list(_told.values())
    for session in sessions:
        if session.sparkContext._jsc is not None:
            install(session)


def check_name(name: str) -> None:
    """Refuse the name of a built-in function; before Spark has started, any name passes.

    Raises:
        PredicateError: Spark has a function of that name.
    """
    if SparkContext._jvm is not None and _is_builtin(name):
        raise PredicateError(_taken(name))


def _is_builtin(name: str) -> bool:
    catalyst: Any = SparkContext._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    builtin = catalyst.analysis.FunctionRegistry.builtin()
    return bool(builtin.functionExists(catalyst.FunctionIdentifier(name.lower())))


def _problem(session: SparkSession, name: str) -> str | None:
    """Why the session cannot have a predicate of that name."""
    if _is_builtin(name):
        # It was registered before there was a Spark to ask.
        return _taken(name)
    if not session.catalog.functionExists(name):
        return None
    return (
        f"the session has a function `{name}` already, and a predicate of that name would replace it. "
        f"Choose another name, or drop the function first: DROP TEMPORARY FUNCTION {name}."
    )


def _taken(name: str) -> str:
    return (
        f"`{name}` is a function of Spark, and a predicate of that name would hide it. "
        f"Choose another name, for example `is_{name.lower()}`."
    )


def as_udf(predicate: PythonPredicate) -> Any:
    """The predicate as a function that Spark calls with Arrow arrays."""

    def evaluate(*columns: pa.Array) -> pa.Array:
        values, valid = apply_predicate(predicate, columns)
        return pa.array(values, mask=None if valid is None else ~valid)

    return F.arrow_udf(evaluate, "boolean")
