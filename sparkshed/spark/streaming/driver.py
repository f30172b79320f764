"""The driver's side of streaming joins: who listens, who decides, and what is remembered for users."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from json import loads
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

from sparkshed.planner.completeness import Completeness
from sparkshed.planner.loop import ControlLoop, Timing
from sparkshed.planner.streaming import Report, StreamingPlan
from sparkshed.spark.functions import identity
from sparkshed.spark.streaming.control import Channel, ControlSource
from sparkshed.sql.errors import ShedError

#: Seconds that a micro-batch covers at least, whatever its trigger says.
_SHORTEST = 0.1
#: Micro-batches that the history of a query holds.
_HISTORY = 10_000

_log = logging.getLogger("sparkshed")
_lock = threading.RLock()
_controllers: dict[str, Controller] = {}
_listening: set[str] = set()


class Controller:
    """One streaming join: its control loop, and the figures of its micro-batches."""

    def __init__(self, name: str, plan: StreamingPlan, boost: float) -> None:
        """Start listening for the figures of that name."""
        self.name = name
        self.plan = plan
        self.channel = Channel() if plan.shedding is not None else None
        self._boost = boost
        self._lock = threading.Lock()
        self._begin()
        self.query: StreamingQuery | None = None

    def _begin(self) -> None:
        shed = self.plan.shedding is not None
        self.loop = ControlLoop(self.plan, boost=self._boost) if shed else None
        self.history: deque[dict[str, Any]] = deque(maxlen=_HISTORY)
        self._total = Completeness()
        self._unhurried = False

    def prepare(self, trigger: Mapping[str, Any]) -> None:
        """Be ready for a query that starts.

        A second one at a time is refused: it would follow the decisions of the first.
        """
        if self.channel is not None and self.query is not None and self.query.isActive:
            msg = (
                "this DataFrame already runs in another streaming query, and both would shed by the same "
                "decisions. Run the statement again with spark.sql, and start that DataFrame."
            )
            raise ShedError(msg)
        self._begin()
        self._unhurried = bool(trigger.get("availableNow") or trigger.get("once"))
        if self.loop is not None and (interval := trigger.get("processingTime")):
            self.loop.throttle.interval = max(_SHORTEST, _seconds(interval))
        if self.channel is not None:
            self.channel.open()

    def progress(self, progress: Any, row: Any) -> None:
        """Take in the figures of a micro-batch."""
        reports = [Report.from_json(loads(text)) for text in row["reports"] or ()]
        if not reports:
            return
        with self._lock:
            self._resume()
            record = self._record(progress, reports)
            self.history.append(record)
            if self.loop is None or self.channel is None:
                return
            ended = _instant(progress.timestamp) + record["seconds"]
            lasted = 0.0 if self._unhurried else record["lasted"]
            decision = self.loop.observe(reports, Timing(ended, record["seconds"], lasted))
            if decision is not None:
                self.channel.publish(
                    {
                        "version": decision.version,
                        "decision": decision.to_json(),
                        "remembered": self.loop.remember(),
                    }
                )

    def _resume(self) -> None:
        if self.channel is not None and self.loop is not None:
            found = self.channel.resumed()
            if found:
                self.loop.resume(found["version"], found["decision"], found["remembered"])

    def _record(self, progress: Any, reports: list[Report]) -> dict[str, Any]:
        """One row of the history."""
        names = [stream.name for stream in self.plan.spec.streams]
        completeness = Completeness()
        for own in reports:
            completeness += own.completeness
        self._total += completeness
        seconds = progress.durationMs.get("triggerExecution", 0) / 1000
        rate = progress.inputRowsPerSecond
        lasted = progress.numInputRows / rate if rate and rate > 0 else 0.0
        work = [sum(own.work[i] for own in reports) for i, _ in enumerate(names)]
        full = work if self.loop is None else self.loop.full_work(reports)
        figures = reports[0].figures
        record: dict[str, Any] = {
            "batch": progress.batchId,
            "timestamp": progress.timestamp,
            "seconds": seconds,
            "lasted": lasted,
            "z": reports[0].throttle,
            "beta": lasted / seconds if seconds and lasted else 1.0,
            "fixed_seconds": figures.get("fixed", 0.0),
            "variable_seconds": figures.get("unit", 0.0) * sum(work),
            "decision": reports[0].version,
            "results": round(completeness.delivered),
            "work": sum(work),
            "completeness": completeness.share,
            "completeness_low": completeness.interval[0],
            "completeness_high": completeness.interval[1],
            "total_completeness": self._total.share,
            "total_completeness_low": self._total.interval[0],
            "total_completeness_high": self._total.interval[1],
            "window_rows": sum(own.rows for own in reports),
            "state_bytes": sum(own.state_bytes for own in reports),
            "state_reads": sum(own.reads for own in reports),
            "state_read_bytes": sum(own.read_bytes for own in reports),
            "engine_seconds": max(own.seconds for own in reports),
        }
        for i, name in enumerate(names):
            counts = self._counts(reports, i)
            record |= {f"{name}.{kind}": count for kind, count in counts.items()}
            record[f"{name}.work"] = work[i]
            record[f"{name}.skipped"] = max(0.0, full[i] - work[i])
        return record

    def _counts(self, reports: list[Report], stream: int) -> dict[str, int]:
        """Rows of a stream by what became of them; copies on several hosts count once."""
        hosts = self.plan.hosts
        copied = hosts.keys is None and stream != hosts.master
        totals = {kind: [own.streams[stream][kind] for own in reports] for kind in reports[0].streams[stream]}
        return {kind: max(found) if copied else sum(found) for kind, found in totals.items()}

    def close(self) -> None:
        """Remove the channel."""
        if self.channel is not None:
            self.channel.close()


def _seconds(interval: str) -> float:
    return pd.Timedelta(interval).total_seconds()


def _instant(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


class _Listener(StreamingQueryListener):
    """Hands the figures of micro-batches to their joins."""

    def onQueryStarted(self, event: Any) -> None:
        """Joins are attached when their query is started."""

    def onQueryProgress(self, event: Any) -> None:
        """Find the joins of the query by the names of their figures."""
        for name, row in (event.progress.observedMetrics or {}).items():
            controller = _controllers.get(name)
            if controller is not None:
                try:
                    controller.progress(event.progress, row)
                except Exception:
                    # The join goes on with its last decision; a listener that raises would tell nobody.
                    _log.exception("the figures of %s could not be taken in", name)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing happened."""

    def onQueryTerminated(self, event: Any) -> None:
        """The history stays, for whoever asks; nobody reads decisions any more."""
        for controller in list(_controllers.values()):
            if controller.query is not None and str(controller.query.runId) == str(event.runId):
                controller.close()


def listen(session: SparkSession) -> None:
    """Listen to the queries of a session and offer decisions to them, once."""
    with _lock:
        if identity(session) not in _listening:
            session.dataSource.register(ControlSource)
            session.streams.addListener(_Listener())
            _listening.add(identity(session))


def register(plan: StreamingPlan, boost: float) -> Controller:
    """A new join, with a name for its figures that no other has."""
    with _lock:
        controller = Controller(f"sparkshed_{len(_controllers) + 1}", plan, boost)
        _controllers[controller.name] = controller
        return controller


def controllers_of(names: list[str]) -> list[Controller]:
    """The joins among the figures that a plan observes."""
    return [_controllers[name] for name in names if name in _controllers]


def progress(query: StreamingQuery) -> dict[str, Any]:
    """The figures of the last micro-batch that joined anything; empty before the first one."""
    records = [own.history[-1] for own in _of(query) if own.history]
    return dict(records[0]) if records else {}


def history(query: StreamingQuery) -> pd.DataFrame:
    """The figures of all micro-batches, one row each; with several joins, one row for each of them."""
    frames = []
    for own in _of(query):
        frame = pd.DataFrame(list(own.history))
        frame.insert(0, "join", own.name)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _of(query: StreamingQuery) -> list[Controller]:
    found = [own for own in _controllers.values() if own.query is not None and own.query.runId == query.runId]
    if not found:
        msg = (
            "this query has no SHED join that this process started. progress() and history() take a query "
            "that was started from a DataFrame of spark.sql with a SHED hint."
        )
        raise ShedError(msg)
    return found


@atexit.register
def _close_all() -> None:
    for controller in _controllers.values():
        controller.close()
