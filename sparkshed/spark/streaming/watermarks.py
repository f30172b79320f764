"""Watermarks on both sides of the join.

Results hold rows of different times: the newest is at or after the watermark, the others can be older by
as much as a window. Spark lets one watermark flow through the whole query, so an aggregation on the time of
an older row would take results for late ones. The watermarks in front of the join are therefore held back by
the longest window, and the join regains it for itself:

    source ─ watermark T - delay - window ─▶ join (adds the window again) ─▶ aggregation
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

DELAY = "spark.watermarkDelayMs"

_STATEFUL = (
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "Distinct",
)


def has_watermark(frame: DataFrame, column: str) -> bool:
    """Whether Spark knows when no older values of the column come any more."""
    return DELAY in frame.schema[column].metadata


@dataclass(frozen=True, slots=True)
class Shape:
    """What matters of a streaming plan before it starts.

    Attributes:
        metrics: Names of the figures that it observes.
        stateful: How many operators may wait for the watermark; a join of sparkshed counts as one.
        reads_files: Whether a source is a folder of files, or another one of that kind.
    """

    metrics: tuple[str, ...]
    stateful: int
    reads_files: bool


def shape_of(frame: DataFrame) -> Shape:
    """Look at a plan, once: every look at a node is a call to the JVM."""
    metrics, stateful, reads_files = [], 0, False
    for node in _nodes(frame._jdf.queryExecution().analyzed()):
        name = node.getClass().getSimpleName()
        if name == "CollectMetrics":
            metrics.append(str(node.name()))
        elif name in _STATEFUL:
            stateful += bool(node.isStreaming())
        elif name == "Join":
            stateful += all(child.isStreaming() for child in _children(node))
        reads_files |= name == "StreamingRelation"
    return Shape(tuple(metrics), stateful, reads_files)


def held_back(frame: DataFrame, micros: int) -> DataFrame:
    """The same rows, with every watermark so much earlier."""
    session = frame.sparkSession
    jvm = session.sparkContext._jvm
    assert jvm is not None
    plan = _delayed(frame._jdf.queryExecution().analyzed(), micros, jvm)
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(made, session)


def _delayed(node: Any, micros: int, jvm: Any) -> Any:
    children = _children(node)
    changed = [_delayed(child, micros, jvm) for child in children]
    if node.getClass().getSimpleName() == "EventTimeWatermark":
        old = node.delay()
        delay = jvm.org.apache.spark.unsafe.types.CalendarInterval(
            _field(old, "months"), _field(old, "days"), _field(old, "microseconds") + micros
        )
        kind = jvm.org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
        return kind(jvm.java.util.UUID.randomUUID(), node.eventTime(), delay, changed[0])
    if all(new.equals(old) for new, old in zip(changed, children, strict=True)):
        return node
    return node.withNewChildren(jvm.PythonUtils.toSeq(changed))


def _field(value: Any, name: str) -> int:
    return int(value.getClass().getField(name).get(value))


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(number) for number in range(children.size())]


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in _children(node):
        yield from _nodes(child)
