"""Starting a query with a SHED join in it: settings that only this query gets.

A stateful operator reads its number of partitions and its state store from the session when its query
starts. Both are set for the moment of starting and set back after it, so that a session left at Spark's
defaults runs the join well, and other queries see no change.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from sparkshed.spark.streaming.checkpoints import refuse_other_kind
from sparkshed.spark.streaming.driver import controllers_of, listen
from sparkshed.spark.streaming.watermarks import metrics_of

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
#: Counting rows makes the store look for each key before it is written; pieces are counted anyway.
_COUNTING = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"

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


def _locating(original: Callable[..., Any]) -> Callable[..., Any]:
    """Remember where the checkpoint is, whether `option` or `options` says so."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def locate(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        for key, value in {given.get("key"): given.get("value"), **given.get("options", {})}.items():
            if str(key).lower() == "checkpointlocation":
                self._shed_checkpoint = str(value)
        return original(self, *args, **kwargs)

    return locate


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        controllers = controllers_of(metrics_of(self._df))
        if not controllers:
            return original(self, *args, **kwargs)
        trigger = {**getattr(self, "_shed_trigger", {}), **{k: v for k, v in kwargs.items() if v}}
        session = self._df.sparkSession
        location = kwargs.get("checkpointLocation") or getattr(self, "_shed_checkpoint", None)
        if location:
            sheds = any(own.channel is not None for own in controllers)
            refuse_other_kind(session, str(location), sheds=sheds)
        listen(session)
        with ExitStack() as prepared:
            for controller in controllers:
                controller.prepare(trigger)
                prepared.callback(controller.abandon)
            with _own_settings(session, max(own.plan.hosts.count for own in controllers)):
                query = original(self, *args, **kwargs)
            prepared.pop_all()
        for controller in controllers:
            controller.attach(query)
        return query

    return start


_WRAPPED = {
    "trigger": _remembering,
    "option": _locating,
    "options": _locating,
    "start": _starting,
    "toTable": _starting,
}


@contextmanager
def _own_settings(session: SparkSession, hosts: int) -> Iterator[None]:
    """Settings for the query that is started meanwhile."""
    wanted = {_PARTITIONS: str(hosts), _CHANGELOG: "true", _COUNTING: "false"}
    if "RocksDB" not in str(session.conf.get(_PROVIDER)):
        wanted[_PROVIDER] = _ROCKSDB
    with _lock:
        explicit = {key: session.conf.get(key, None) for key in wanted if is_set(session, key)}
        for key in (_CHANGELOG, _COUNTING):
            if key in explicit:
                del wanted[key]
        try:
            for key, value in wanted.items():
                session.conf.set(key, value)
            yield
        finally:
            for key in wanted:
                if explicit.get(key) is not None:
                    session.conf.set(key, explicit[key])
                else:
                    session.conf.unset(key)


def is_set(session: SparkSession, key: str) -> bool:
    """Whether the session says something of its own."""
    return bool(session._jsparkSession.sessionState().conf().contains(key))
