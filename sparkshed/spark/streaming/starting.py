"""Starting a query with a SHED join in it: settings that only this query gets.

A stateful operator reads its number of partitions and its state store from the session when its query
starts. Both are set for the moment of starting and set back after it, so that a session left at Spark's
defaults runs the join well, and other queries see no change.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from sparkshed.spark.streaming.checkpoints import claim
from sparkshed.spark.streaming.driver import controllers_of, listen
from sparkshed.spark.streaming.watermarks import shape_of

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
#: Counting rows makes the store look for each key before it is written; pieces are counted anyway.
_COUNTING = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
#: Pieces live for a window; RocksDB keeps what was written in memory, live or not, until a buffer is full.
_BUFFER, _MEGABYTES = "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB", "16"

#: A micro-batch without rows, for the watermark alone: a join has no results by it, and forgets rows later.
_EMPTY = "spark.sql.streaming.noDataMicroBatches.enabled"

#: Without Hadoop's native library, each file of a checkpoint on a local disk starts ten processes (readlink,
#: chmod), unless files are moved this way; both move a file at once.
_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_PLAIN = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
PLAIN_FILES = {_FILES: _PLAIN}
_HOME = "spark.sql.streaming.checkpointLocation"
_CHECKPOINT = "checkpointlocation"
_INTERVAL = "processingTime"
_PLACES = (_CHECKPOINT, "path")
#: Milliseconds to wait for the sources of a query.
_PATIENCE = 10_000

_lock = threading.RLock()
_installed = False


def install_starting() -> None:
    """Let writers of streaming queries look for SHED joins, once."""
    global _installed
    with _lock:
        if not _installed:
            for name, wrapped in _WRAPPED.items():
                setattr(DataStreamWriter, name, wrapped(getattr(DataStreamWriter, name)))
            _installed = True


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def trigger(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._shed_trigger = kwargs
        return original(self, *args, **kwargs)

    return trigger


def _naming(original: Callable[..., Any]) -> Callable[..., Any]:
    """Remember the name of the query."""

    @functools.wraps(original)
    def name(self: Any, queryName: str) -> Any:
        self._shed_name = queryName
        return original(self, queryName)

    return name


def _locating(original: Callable[..., Any]) -> Callable[..., Any]:
    """Remember where checkpoint and results go, whether `option` or `options` says so."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def locate(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        for key, value in {given.get("key"): given.get("value"), **given.get("options", {})}.items():
            if str(key).lower() in _PLACES:
                self._shed_places = {**getattr(self, "_shed_places", {}), str(key).lower(): str(value)}
        return original(self, *args, **kwargs)

    return locate


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        shape = shape_of(self._df)
        controllers = controllers_of(shape.metrics)
        if not controllers:
            return original(self, *args, **kwargs)
        session = self._df.sparkSession
        trigger = {**getattr(self, "_shed_trigger", {}), **{k: v for k, v in kwargs.items() if v}}
        if trigger.get(_INTERVAL):
            trigger[_INTERVAL] = _seconds(session, str(trigger[_INTERVAL]))
        places = _places(self, signature.bind(self, *args, **kwargs).arguments)
        location = _checkpoint(self, places, kwargs.get("queryName"))
        if location:
            claim(session, location, [own.plan for own in controllers])
        listen(session)
        with _lock, ExitStack() as prepared:
            for controller in controllers:
                controller.prepare(trigger)
                prepared.callback(controller.abandon)
            hosts = max(own.plan.hosts.count for own in controllers)
            with _own_files(session, places):
                alone = shape.stateful == sum(own.plan.operators for own in controllers)
                with _own_settings(session, hosts, alone=alone):
                    query = original(self, *args, **kwargs)
                prepared.pop_all()
                for number, controller in enumerate(controllers, 1):
                    controller.attach(query, number)
                if shape.reads_files:
                    _wait_for_sources(query)
        return query

    return start


def _places(writer: Any, given: Mapping[str, Any]) -> dict[str, str]:
    """Where checkpoint and results of a query go, as it is told when it starts or was told before."""
    told = {**given, **given.get("options", {})}
    found = {key.lower(): str(value) for key, value in told.items() if key.lower() in _PLACES and value}
    return {**getattr(writer, "_shed_places", {}), **found}


def _checkpoint(writer: Any, places: Mapping[str, str], name: str | None) -> str | None:
    """Where the checkpoint of a query is; None if that is a place of which nobody knows."""
    if _CHECKPOINT in places:
        return places[_CHECKPOINT]
    home, named = writer._df.sparkSession.conf.get(_HOME, None), name or getattr(writer, "_shed_name", None)
    return f"{home}/{named}" if home and named else None


def _seconds(session: SparkSession, interval: str) -> float:
    """An interval as Spark reads it."""
    jvm: Any = session._jvm
    return int(jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(interval).intervalMs()) / 1000


_WRAPPED = {
    "trigger": _remembering,
    "queryName": _naming,
    "option": _locating,
    "options": _locating,
    "start": _starting,
    "toTable": _starting,
}


@contextmanager
def _own_settings(session: SparkSession, hosts: int, *, alone: bool) -> Iterator[None]:
    """Settings for the query that is started meanwhile; `alone` if nothing but joins has state in it."""
    wanted = {_PARTITIONS: str(hosts)}
    if "RocksDB" not in str(session.conf.get(_PROVIDER)):
        wanted[_PROVIDER] = _ROCKSDB
    ours = {_CHANGELOG: "true", _COUNTING: "false", _BUFFER: _MEGABYTES}
    if alone:
        ours[_EMPTY] = "false"
    wanted |= {key: value for key, value in ours.items() if not is_set(session, key)}
    with set_for_now(session, wanted):
        yield


@contextmanager
def _own_files(session: SparkSession, places: Mapping[str, str]) -> Iterator[None]:
    """Move files of a checkpoint on a local disk without starting processes, unless the user says how.

    A sink that writes files keeps a log of them, in the same way.
    """
    home = places.get(_CHECKPOINT) or session.conf.get(_HOME, None) or "."
    plain = not is_set(session, _FILES) and all(is_local(session, own) for own in {home, *places.values()})
    with set_for_now(session, PLAIN_FILES if plain else {}):
        yield


def is_local(session: SparkSession, location: str) -> bool:
    """Whether a path is on a local disk."""
    jvm: Any = session._jvm
    # What cannot be found out here Spark complains about itself.
    with suppress(Py4JJavaError, PySparkException):
        path = jvm.org.apache.hadoop.fs.Path(location)
        system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
        # Older versions have the class elsewhere.
        jvm.java.lang.Class.forName(_PLAIN)
        return bool(system.getUri().getScheme() == "file")
    return False


def _wait_for_sources(query: Any) -> None:
    """Wait until the files that a query reads have logs, which take their settings from the session."""
    # A query that fails before that says so to whoever awaits it.
    with suppress(PySparkException):
        query._jsq.streamingQuery().awaitInitialization(_PATIENCE)


@contextmanager
def set_for_now(session: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session for the length of the block."""
    with _lock:
        former = {key: session.conf.get(key) if is_set(session, key) else None for key in wanted}
        try:
            for key, value in wanted.items():
                session.conf.set(key, value)
            yield
        finally:
            for key, value in former.items():
                if value is None:
                    session.conf.unset(key)
                else:
                    session.conf.set(key, value)


def is_set(session: SparkSession, key: str) -> bool:
    """Whether the session says something of its own."""
    return bool(session._jsparkSession.sessionState().conf().contains(key))
