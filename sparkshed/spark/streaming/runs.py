"""One run of a streaming join: the figures of its micro-batches, and the decisions that follow from them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from json import loads
from typing import Any

from pyspark.sql.streaming import StreamingQuery

from sparkshed.planner.completeness import Completeness
from sparkshed.planner.guide import Guide
from sparkshed.planner.loop import ControlLoop, Timing
from sparkshed.planner.picture import running_lines
from sparkshed.planner.streaming import Decision, Report, StreamingPlan
from sparkshed.planner.strips import strips_of
from sparkshed.spark.streaming.control import Channel
from sparkshed.spark.streaming.figures import record_of, routing_of, shares_of
from sparkshed.spark.streaming.journal import Journal
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
        guide: Tells the router what it must know; None without one.
        history: The figures of the last micro-batches.
    """

    def __init__(
        self, plan: StreamingPlan, channel: Channel | None, boost: float, trigger: Mapping[str, Any]
    ) -> None:
        """Be ready for a query that starts with a trigger, whose `processingTime` is in seconds."""
        self.id: str | None = None
        self.query: StreamingQuery | None = None
        self.over = threading.Event()
        self.loop = ControlLoop(plan, boost=boost) if plan.steered else None
        self.guide = Guide(plan) if plan.hosts.router is not None else None
        self.history: deque[dict[str, Any]] = deque(maxlen=_HISTORY)
        self._plan = plan
        self._channel = channel
        self._journal: Journal | None = None
        self._decision: Decision | None = None
        self._lock = threading.Lock()
        self._total = Completeness()
        self._last = 0.0
        # What was published last, all of it.
        self._offset: dict[str, Any] = {"version": 0, "decision": None, "routing": None, "remembered": None}
        # Nothing arrives while everything that is there is joined, so there is no load to follow.
        self._unhurried = bool(trigger.get("availableNow") or trigger.get("once"))
        if self.loop is not None and (interval := trigger.get("processingTime")):
            self.loop.throttle.interval = max(_SHORTEST, interval)

    def keep(self, journal: Journal) -> None:
        """Write down what happens from now on, and what happened before anybody knew where."""
        with self._lock:
            self._journal = journal
            for record in self.history:
                journal.write("batch", record)

    def open(self) -> None:
        """Make the way of decisions; the last one of an earlier run may not be for this one."""
        if self._channel is None:
            return
        self._channel.open()
        if self._works_fully and self.loop is not None:
            self._offset["decision"] = self.loop.do_everything().to_json()
            # The reader knows what comes after the last one of an earlier run; it is 1 if there was none.
            self._channel.publish(self._offset)
            self._offset["version"] = 1

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
            lasted = self._lasted(batch, reports)
            ended = _instant(batch.timestamp) + batch.seconds
            decision = self._decided(Timing(ended, batch.seconds, lasted), reports)
            routing = None if self.guide is None else self.guide.observe(reports, ended)
            record = self._record(batch, reports, lasted)
            self.history.append(record)
            if self._journal is not None:
                self._journal.write("batch", record)
            if decision is not None or routing is not None:
                self._publish(decision, routing)

    def _publish(self, decision: Decision | None, routing: dict[str, Any] | None) -> None:
        assert self._channel is not None
        self._decision = decision or self._decision
        if decision is not None and self._journal is not None:
            self._journal.decide(self._told(decision))
        if decision is not None and self.loop is not None:
            self._offset |= {"decision": decision.to_json(), "remembered": self.loop.remember()}
        if routing is not None:
            self._offset["routing"] = routing
        self._offset["version"] += 1
        self._channel.publish(self._offset)

    def _lasted(self, batch: Batch, reports: list[Report]) -> float:
        """How long the input of a micro-batch took to arrive; 0 if that is not known."""
        began = _instant(batch.timestamp)
        lasted = began - self._last if self._last else 0.0
        if any(count["arrived"] for own in reports for count in own.streams):
            self._last = began
        return lasted

    def lines(self, mode: str) -> Iterator[str]:
        """What the join does now, in the words of EXPLAIN."""
        with self._lock:
            last, decision = self.history[-1] if self.history else None, self._decision
        yield "== Running =="
        if last is None:
            yield "  Batch: none has ended yet"
            return
        share, low, high = (last[f"total_completeness{part}"] for part in ("", "_low", "_high"))
        yield (
            f"  Batch: {last['batch']}, seconds={last['seconds']:.2f}, z={last['z']:.3g}, "
            f"results={last['results']}, completeness={share:.3g} ({low:.3g} to {high:.3g})"
        )
        if decision is not None:
            names = [stream.name for stream in self._plan.spec.streams]
            yield f"  Decision: {decision.version}, z={decision.configuration.throttle:.3g}"
            yield from (f"  {line}" for line in running_lines(decision.configuration, self._plan.spec, names))
        if mode == "formatted":
            yield from (f"    {name}: {value}" for name, value in last.items())

    def _told(self, decision: Decision) -> dict[str, Any]:
        """A decision for people."""
        names, own = [stream.name for stream in self._plan.spec.streams], decision.configuration
        strips = [asdict(strip) for strip in strips_of(own, self._plan.spec, names)]
        return {
            "version": decision.version,
            "z": own.throttle,
            "keep": dict(zip(names, own.keep, strict=False)),
            "orders": [
                [names[stream] for stream in (origin, *order)] for origin, order in enumerate(own.orders)
            ],
            "strips": strips,
        }

    def _decided(self, timing: Timing, reports: list[Report]) -> Decision | None:
        if self.loop is None:
            return None
        return self.loop.observe(reports, replace(timing, lasted=0.0) if self._unhurried else timing)

    def _resume(self) -> None:
        found = None if self._channel is None else self._channel.resumed()
        if not found or found["version"] < self._offset["version"]:
            return
        begun = self._works_fully and self.loop is not None
        self._offset["version"] = found["version"] + begun
        decision, routing = found["decision"], found.get("routing")
        if routing is not None and self.guide is not None:
            self._offset["routing"] = routing
            self.guide.resume(routing)
        if decision is not None and self.loop is not None:
            self.loop.resume(decision["version"], decision, found["remembered"], fully=self._works_fully)

    def _record(self, batch: Batch, reports: list[Report], lasted: float) -> dict[str, Any]:
        """One row of the history."""
        completeness = Completeness()
        for own in reports:
            completeness += own.completeness
        self._total += completeness
        timing = {
            "batch": batch.number,
            "timestamp": batch.timestamp,
            "seconds": batch.seconds,
            "lasted": lasted,
        }
        return {
            **timing,
            **record_of(self._plan, reports),
            **routing_of(self._plan, reports),
            # Listeners of Spark's get those of the last decision, as hosts know no others.
            "beta": lasted / batch.seconds if batch.seconds and lasted else 1.0,
            **self._costs(batch, reports),
            **shares_of(completeness),
            **shares_of(self._total, "total_"),
        }

    def _costs(self, batch: Batch, reports: list[Report]) -> dict[str, float]:
        """Fixed and variable cost: as the throttle knows them, or else what was measured in this batch."""
        if self.loop is not None and self.loop.throttle.unit > 0:
            throttle = self.loop.throttle
            variable = throttle.unit * sum(own.effort for own in reports)
            return {"fixed_seconds": throttle.fixed, "variable_seconds": variable}
        joining = min(batch.seconds, max(own.joining for own in reports))
        return {"fixed_seconds": batch.seconds - joining, "variable_seconds": joining}


def _report(text: str) -> Report:
    return Report.from_json(loads(text))


def _instant(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()
