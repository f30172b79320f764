"""The driver's side of streaming joins: who listens, and who belongs to which query."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from sparkshed.planner.streaming import StreamingPlan
from sparkshed.spark.functions import identity
from sparkshed.spark.streaming.control import Channel, ControlSource
from sparkshed.spark.streaming.journal import Journal
from sparkshed.spark.streaming.listening import Batch, Listener
from sparkshed.spark.streaming.runs import Run
from sparkshed.sql.errors import ShedError
from sparkshed.view.notebook import History

#: Runs of one DataFrame whose figures are kept.
_RUNS = 8
#: Seconds to wait for the last figures of a query that has ended.
_PATIENCE = 5.0

_log = logging.getLogger("sparkshed")
_lock = threading.RLock()
_controllers: dict[str, Controller] = {}
_listening: set[str] = set()


class Controller:
    """One streaming join, and the queries that ran it."""

    def __init__(self, name: str, plan: StreamingPlan, boost: float, summary: dict[str, Any]) -> None:
        """Know the plan, and what there is to say of it; figures of that name are its own."""
        self.name = name
        self.plan = plan
        self.summary = summary
        self.channel = Channel() if plan.steered or plan.hosts.router is not None else None
        self.runs: deque[Run] = deque(maxlen=_RUNS)
        self._boost = boost

    def prepare(self, trigger: Mapping[str, Any]) -> None:
        """Be ready for a query that starts.

        A second one at a time is refused: it would follow the decisions of the first.
        """
        last = self.runs[-1].query if self.runs else None
        if self.channel is not None and last is not None and last.isActive:
            msg = (
                "this DataFrame already runs in another streaming query, and both would follow the same "
                "decisions. Run the statement again with spark.sql, and start that DataFrame."
            )
            raise ShedError(msg)
        run = Run(self.plan, self.channel, self._boost, trigger)
        run.open()
        self.runs.append(run)

    def attach(self, query: StreamingQuery, number: int) -> None:
        """The query that was prepared for has started, with this join in it; it may have ended already."""
        run = self.runs[-1]
        run.id, run.query = str(query.runId), query
        told = {"query": str(query.id), "run": run.id, "name": query.name, "started": time.time()}
        plain = {key: value for key, value in self.summary.items() if key != "texts"}
        told |= plain | {"text": self.summary["texts"]["simple"]}
        run.keep(Journal(_checkpoint_of(query), number, told))
        if not query.isActive:
            self.close()

    def abandon(self) -> None:
        """The query that was prepared for did not start."""
        self.runs.pop()
        self.close()

    def run(self, run_id: str) -> Run | None:
        """A run by its id; figures can come before the id of their query is known."""
        for own in self.runs:
            if own.id == run_id:
                return own
        newest = self.runs[-1] if self.runs else None
        if newest is not None and newest.id is None:
            newest.id = run_id
            return newest
        return None

    def take(self, batch: Batch) -> None:
        """Take in the figures of a micro-batch."""
        run = self.run(batch.run)
        if run is not None:
            try:
                run.progress(batch)
            except Exception:
                # The JVM calls this, and would not tell the user. The join goes on with its last decision.
                _log.exception("the figures of %s could not be taken in", self.name)

    def ended(self, run_id: str) -> None:
        """Nobody reads decisions any more, unless another run has begun."""
        for run in self.runs:
            if run.id == run_id:
                run.over.set()
        if self.runs and self.runs[-1].id == run_id:
            self.close()

    def close(self) -> None:
        """Remove the channel."""
        if self.channel is not None:
            self.channel.close()


def _takers() -> dict[str, Callable[[Batch], None]]:
    """What takes the figures of the joins that run."""
    with _lock:
        return {
            own.name: own.take
            for own in _controllers.values()
            if not all(run.over.is_set() for run in own.runs)
        }


def _ended(run_id: str) -> None:
    """The figures stay, for whoever asks."""
    for controller in list(_controllers.values()):
        controller.ended(run_id)


def listen(session: SparkSession) -> None:
    """Listen to the queries of a session and offer decisions to them, once."""
    with _lock:
        if identity(session) not in _listening:
            _offer_decisions(session)
            session.streams.addListener(Listener(_takers, _ended))
            _listening.add(identity(session))


def _offer_decisions(session: SparkSession) -> None:
    """Register the source of decisions.

    Spark looks into the active session for one of that name, whichever the new one is for.
    """
    jvm: Any = session._jvm
    sessions = jvm.org.apache.spark.sql.SparkSession
    active = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        session.dataSource.register(ControlSource)
    finally:
        if active.isDefined():
            sessions.setActiveSession(active.get())
        else:
            sessions.clearActiveSession()


def _checkpoint_of(query: StreamingQuery) -> str | None:
    """Where a query keeps its state."""
    with suppress(Py4JError):
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    return None


def register(plan: StreamingPlan, boost: float, summary: dict[str, Any]) -> Controller:
    """A new join, with a name for its figures that no other has."""
    with _lock:
        controller = Controller(f"sparkshed_{len(_controllers) + 1}", plan, boost, summary)
        _controllers[controller.name] = controller
        return controller


def controllers_of(names: Sequence[str]) -> list[Controller]:
    """The joins among the figures that a plan observes."""
    return [_controllers[name] for name in names if name in _controllers]


def progress(query: StreamingQuery) -> dict[str, Any]:
    """The figures of the last micro-batch that joined anything; empty before the first one."""
    records = [run.history[-1] for _, run in runs_of(query) if run.history]
    return dict(records[0]) if records else {}


def history(query: StreamingQuery) -> History:
    """The figures of all micro-batches, one row each; with several joins, one row for each of them.

    It is a pandas DataFrame; `history(query).draw()` shows charts of it in a notebook.
    """
    frames = []
    for name, run in runs_of(query):
        frame = pd.DataFrame(list(run.history))
        frame.insert(0, "join", name)
        frames.append(frame)
    return History(pd.concat(frames, ignore_index=True))


def runs_of(query: StreamingQuery) -> list[tuple[str, Run]]:
    """The joins of a query, by the names of their figures."""
    if not isinstance(query, StreamingQuery):
        msg = (
            f"progress() and history() take the query that `writeStream….start()` returned, but got "
            f"{type(query).__name__}."
        )
        raise ShedError(msg)
    wanted = str(query.runId)
    found = [(own.name, run) for own in _controllers.values() for run in own.runs if run.id == wanted]
    if not found:
        msg = (
            "this query has no SHED join that this process started. progress() and history() take a query "
            "that was started from a DataFrame of spark.sql with a SHED hint."
        )
        raise ShedError(msg)
    if not query.isActive:
        # Spark tells of the last micro-batch a moment after the query has ended, and then of its end.
        for _, run in found:
            run.over.wait(_PATIENCE)
    return found


def running_text(query: StreamingQuery, mode: str) -> str:
    """The plans of the joins of a query, and what they do now."""
    texts = []
    for name, run in runs_of(query):
        controller = _controllers[name]
        texts.append(controller.summary["texts"][mode] + "\n".join(run.lines(mode)) + "\n")
    return "\n".join(texts)


@atexit.register
def _close_all() -> None:
    for controller in _controllers.values():
        controller.close()
