"""What Spark tells the driver of its micro-batches, and no more of it than is needed.

PySpark turns every progress event into Python objects, with a call to the JVM for each figure. Looking for a
Java class by its short name, or ending an iteration over a Java collection, searches all of Spark's jars.
Together that takes 60 ms of a core for each micro-batch. Here, a few calls do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import loads
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import JStreamingQueryListener

#: The observed metric that holds the reports of the hosts.
REPORTS = "reports"


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch of a query.

    Attributes:
        run: Spark's id of the run.
        number: Spark's number of the batch.
        timestamp: When it was triggered, as Spark writes it.
        seconds: How long it took.
        reports: What the hosts of one join reported.
    """

    run: str
    number: int
    timestamp: str
    seconds: float
    reports: tuple[str, ...]


class Listener(StreamingQueryListener):
    """Hands over the reports of micro-batches to their joins, and the ends of runs."""

    def __init__(
        self, takers: Callable[[], dict[str, Callable[[Batch], None]]], ended: Callable[[str], None]
    ) -> None:
        """Listen for joins.

        Args:
            takers: What takes the reports that are observed under each name.
            ended: Is told the id of a run that ended.
        """
        self._takers = takers
        self._ended = ended

    def onQueryStarted(self, event: Any) -> None:
        """Joins are attached when their query is started."""

    def onQueryProgress(self, event: Any) -> None:
        """Hand over what was observed in the micro-batch; the event is the JVM's."""
        progress = event.progress()
        observed = progress.observedMetrics()
        for name, take in self._takers().items():
            row = observed.get(name)
            if row is not None:
                batch = Batch(
                    progress.runId().toString(),
                    progress.batchId(),
                    progress.timestamp(),
                    (progress.durationMs().get("triggerExecution") or 0) / 1000,
                    tuple(loads(row.json()).get(REPORTS) or ()),
                )
                take(batch)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing happened."""

    def onQueryTerminated(self, event: Any) -> None:
        """Tell that the run ended; the event is the JVM's."""
        self._ended(event.runId().toString())

    @property
    def _jlistener(self) -> Any:
        if not hasattr(self, "_wrapped"):
            from pyspark import SparkContext

            jvm: Any = SparkContext._jvm
            self._wrapped = jvm.PythonStreamingQueryListenerWrapper(_Unread(self))
        return self._wrapped


class _Unread(JStreamingQueryListener):
    """Passes the JVM's events on as they are."""

    def onQueryStarted(self, jevent: Any) -> None:
        self.pylistener.onQueryStarted(jevent)

    def onQueryProgress(self, jevent: Any) -> None:
        self.pylistener.onQueryProgress(jevent)

    def onQueryIdle(self, jevent: Any) -> None:
        self.pylistener.onQueryIdle(jevent)

    def onQueryTerminated(self, jevent: Any) -> None:
        self.pylistener.onQueryTerminated(jevent)
