"""`sparkshed.enable` and friends: hinted SQL through `spark.sql`."""

from __future__ import annotations

import functools
import threading
from typing import Any, overload

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from sparkshed.predicates import registered
from sparkshed.spark.functions import identity, install, keep_installed, stop_installing
from sparkshed.spark.runner import Statement, check_mode
from sparkshed.spark.streaming.driver import running_text
from sparkshed.sql.errors import ShedError
from sparkshed.view.notebook import Explanation

#: A setting of enabled sessions, by which copies of them are known: Spark runs `foreachBatch` in one.
_MARK = "spark.sparkshed.enabled"

_lock = threading.RLock()
_enabled: set[str] = set()
_originals: dict[str, Any] = {}


def enable(spark: SparkSession) -> SparkSession:
    """Let `spark.sql` understand SHED hints in this session; returns the same session.

    Enabling twice is enabling once. Sessions made from it with `newSession()` understand them too, and
    the copy in which `foreachBatch` runs does, too. Other sessions stay as they are.
    """
    _check(spark)
    with _lock:
        _enabled.add(identity(spark))
        if not _originals:
            _install()
    spark.conf.set(_MARK, "true")
    keep_installed(spark)
    return spark


def disable(spark: SparkSession) -> SparkSession:
    """Undo :func:`enable`; returns the same session."""
    _check(spark)
    with _lock:
        _enabled.discard(identity(spark))
        spark.conf.unset(_MARK)
        stop_installing(spark)
        if not _enabled:
            _uninstall()
    return spark


def query(spark: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
    """Run a hinted statement without touching `spark.sql`; takes what `spark.sql` takes."""
    _check(spark)
    if not isinstance(sqlQuery, str):
        msg = f"query() takes a session and a statement, but got {type(sqlQuery).__name__} as the statement."
        raise ShedError(msg)
    install(spark)
    return Statement(spark, sqlQuery, args, kwargs, _plain_sql(spark)).run()


@overload
def explain(
    spark: SparkSession, sqlQuery: str, args: Any = None, *, mode: str = "simple", **kwargs: Any
) -> str: ...


@overload
def explain(spark: StreamingQuery, *, mode: str = "simple") -> str: ...


def explain(
    spark: SparkSession | StreamingQuery,
    sqlQuery: str | None = None,
    args: Any = None,
    *,
    mode: str = "simple",
    **kwargs: Any,
) -> str:
    """The shed plans of a statement as text; mode is `simple`, `extended` or `formatted`.

    With a streaming query alone, its plans, and what its joins do now.
    """
    if isinstance(spark, StreamingQuery):
        check_mode(mode)
        return Explanation(running_text(spark, mode))
    _check(spark)
    if not isinstance(sqlQuery, str):
        msg = "explain() takes a session and a statement, or a streaming query alone."
        raise ShedError(msg)
    install(spark)
    return Explanation(Statement(spark, sqlQuery, args, kwargs, _plain_sql(spark)).explain(mode))


def _is_enabled(spark: SparkSession) -> bool:
    return identity(spark) in _enabled or spark.conf.get(_MARK, None) == "true"


def _check(spark: object) -> None:
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
        msg = (
            f"sparkshed needs a SparkSession of this process, but got {type(spark).__module__}."
            f"{type(spark).__name__}. Spark Connect sessions are not supported; "
            f"use SparkSession.builder.master(…).getOrCreate()."
        )
        raise ShedError(msg)


def _plain_sql(spark: SparkSession) -> Any:
    """`spark.sql` as Spark has it."""
    original = _originals.get("sql", SparkSession.sql)
    return functools.partial(original, spark)


def _install() -> None:
    _originals["sql"], _originals["newSession"] = SparkSession.sql, SparkSession.newSession

    @functools.wraps(_originals["sql"])
    def sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        hinted = isinstance(sqlQuery, str) and "/*+" in sqlQuery
        if (hinted or registered()) and _is_enabled(self):
            if hinted:
                return query(self, sqlQuery, args, **kwargs)
            install(self)
        return _plain_sql(self)(sqlQuery, args, **kwargs)

    @functools.wraps(_originals["newSession"])
    def new_session(self: SparkSession) -> SparkSession:
        original = _originals.get("newSession")
        child = original(self) if original else type(self).newSession(self)
        with _lock:
            enabled = _is_enabled(self)
        return enable(child) if enabled else child

    SparkSession.sql = sql  # type: ignore[method-assign]
    SparkSession.newSession = new_session  # type: ignore[method-assign]


def _uninstall() -> None:
    if _originals:
        SparkSession.sql = _originals.pop("sql")  # type: ignore[method-assign]
        SparkSession.newSession = _originals.pop("newSession")  # type: ignore[method-assign]
