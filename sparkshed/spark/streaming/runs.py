"""One run of a streaming join: the figures of its micro-batches, and the decisions that follow from them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from json import loads
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StreamingQuery

from sparkshed.planner.completeness import Completeness
from sparkshed.planner.loop import ControlLoop, Timing
from sparkshed.planner.streaming import Report, StreamingPlan
from sparkshed.spark.streaming.control import Channel
from sparkshed.spark.streaming.listening import Batch

#: Seconds that a micro-batch covers at least, whatever its trigger says.
_SHORTEST = 0.1
#: Micro-batches that the history of a run holds.
_HISTORY = 10_000


class Run:
    """What the driver knows of one run.

    Attributes:
        id: Spark's id of the run, None until it is known.
        query: The query, None while it is starting.
        loop: Finds decisions; None for the exact join.
        history: The figures of the last micro-batches.
    """

    def __init__(
        self, plan: StreamingPlan, channel: Channel | None, boost: float, trigger: Mapping[str, Any]
    ) -> None:
        """Be ready for a query that starts with a trigger."""
        self.id: str | None = None
        self.query: StreamingQuery | None = None
        self.is_over = False
        self.loop = ControlLoop(plan, boost=boost) if plan.steered else None
        self.history: deque[dict[str, Any]] = deque(maxlen=_HISTORY)
        self._plan = plan
        self._channel = channel
        self._lock = threading.Lock()
        self._total = Completeness()
        self._last = 0.0
        # Nothing arrives while everything that is there is joined, so there is no load to follow.
        self._unhurried = bool(trigger.get("availableNow") or trigger.get("once"))
        if self.loop is not None and (interval := trigger.get("processingTime")):
            # Spark understands more intervals than pandas; those leave the default.
            with suppress(ValueError):
                self.loop.throttle.interval = max(_SHORTEST, pd.Timedelta(interval).total_seconds())

    def open(self) -> None:
        """Make the way of decisions; the last one of an earlier run may not be for this one."""
        if self._channel is None or self.loop is None:
            return
        self._channel.open()
        if self._works_fully:
            everything = self.loop.do_everything()
            self._channel.publish({"version": 0, "decision": everything.to_json(), "remembered": None})

    @property
    def _works_fully(self) -> bool:
        """Whether this run does all the work, whatever an earlier one decided."""
        budget = 1.0 if self._plan.shedding is None else self._plan.shedding.budget
        return self._unhurried if self._plan.follows else budget >= 1

    def progress(self, batch: Batch) -> None:
        """Take in the figures of a micro-batch."""
        # A batch that a sink computes twice reports twice.
        reports = list({own.host: own for own in map(_report, batch.reports)}.values())
        if not reports:
            return
        with self._lock:
            self._resume()
            record = self._record(batch, reports)
            self.history.append(record)
            if self.loop is None or self._channel is None:
                return
            ended = _instant(batch.timestamp) + record["seconds"]
            lasted = 0.0 if self._unhurried else record["lasted"]
            decision = self.loop.observe(reports, Timing(ended, record["seconds"], lasted))
            if decision is not None:
                remembered = self.loop.remember()
                self._channel.publish(
                    {"version": decision.version, "decision": decision.to_json(), "remembered": remembered}
                )

    def _resume(self) -> None:
        if self._channel is not None and self.loop is not None:
            found = self._channel.resumed()
            if found:
                self.loop.resume(
                    found["version"], found["decision"], found["remembered"], fully=self._works_fully
                )

    def _record(self, batch: Batch, reports: list[Report]) -> dict[str, Any]:
        """One row of the history."""
        names = [stream.name for stream in self._plan.spec.streams]
        completeness = Completeness()
        for own in reports:
            completeness += own.completeness
        self._total += completeness
        seconds = batch.seconds
        began = _instant(batch.timestamp)
        lasted = began - self._last if self._last else 0.0
        if any(count["arrived"] for own in reports for count in own.streams):
            self._last = began
        work = [sum(own.work[i] for own in reports) for i, _ in enumerate(names)]
        full = work if self.loop is None else self.loop.full_work(reports)
        figures = reports[0].figures
        record: dict[str, Any] = {
            "batch": batch.number,
            "timestamp": batch.timestamp,
            "seconds": seconds,
            "lasted": lasted,
            "z": reports[0].throttle,
            "beta": lasted / seconds if seconds and lasted else 1.0,
            "fixed_seconds": figures.get("fixed", 0.0),
            "variable_seconds": figures.get("unit", 0.0) * sum(own.effort for own in reports),
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
            "memory": sum(own.memory for own in reports),
            "drop": max(own.drop for own in reports),
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
        hosts = self._plan.hosts
        copied = hosts.keys is None and stream != hosts.master
        totals = {kind: [own.streams[stream][kind] for own in reports] for kind in reports[0].streams[stream]}
        return {kind: max(found) if copied else sum(found) for kind, found in totals.items()}


def _report(text: str) -> Report:
    return Report.from_json(loads(text))


def _instant(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()
