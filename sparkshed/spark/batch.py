"""Batch execution: one shuffle into groups, then the engine on each group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import ByteType, StructField, StructType

from sparkshed.engine import JoinOperator
from sparkshed.engine.python import utc_type
from sparkshed.planner.physical import JoinSpec, Layout, ShedJoinExec
from sparkshed.spark.inputs import STREAM, Inputs
from sparkshed.spark.times import segment_of

GROUP = "__shed_group"


def execute(plan: ShedJoinExec, inputs: Inputs) -> DataFrame:
    """The operator's output as a lazy DataFrame."""
    frames = [
        frame.selectExpr("*", f"{_group(plan, number)} AS {GROUP}")
        for number, frame in enumerate(inputs.frames)
    ]
    rows = inputs.union(frames, [GROUP]).repartitionById(plan.layout.groups, GROUP)
    join = group_join(plan.spec, inputs.slots.places, plan.layout.master)
    return rows.groupBy(GROUP).applyInArrow(join, _output_schema(plan.spec, inputs))


def _group(plan: ShedJoinExec, stream: int) -> str:
    """SQL for the groups a row belongs to: one for the master, all within reach for the others."""
    layout, spec = plan.layout, plan.spec
    column = f"c{spec.streams[stream].time}"
    type_ = spec.streams[stream].types[spec.streams[stream].time]
    bucket = _bucket(layout, stream)
    if stream == layout.master:
        return f"{bucket} * {layout.segments} + {segment_of(column, layout.cuts, type_)}"
    if layout.segments == 1:
        return bucket
    after, before = spec.bounds[stream][layout.master], spec.bounds[layout.master][stream]
    # A master row at T_M meets this one iff T - after <= T_M <= T + before.
    first = "0" if after is None else segment_of(column, layout.cuts, type_, after)
    last = str(layout.segments - 1) if before is None else segment_of(column, layout.cuts, type_, -before)
    # Contradictory bounds can put the end before the start; such a row meets nothing anyway.
    segments = f"sequence({first}, greatest({first}, {last}))"
    return f"explode(transform({segments}, segment -> {bucket} * {layout.segments} + segment))"


def _bucket(layout: Layout, stream: int) -> str:
    if layout.buckets == 1 or layout.keys is None:
        return "0"
    return f"pmod(hash(c{layout.keys[stream]}), {layout.buckets})"


def _output_schema(spec: JoinSpec, inputs: Inputs) -> StructType:
    if not spec.output:
        return StructType([StructField("__row", ByteType())])
    fields = [StructField(c.name, inputs.type_of(c.stream, c.column)) for c in spec.output]
    return StructType(fields)


def group_join(
    spec: JoinSpec, places: tuple[tuple[int, ...], ...], master: int
) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """The function that joins one group on a worker.

    The master's rows arrive last, so each of its results is found from them, and no other direction
    has any work.
    """

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = in_utc(pa.Table.from_batches(batches))
        numbers = table.column(STREAM)
        streams = {}
        for stream, columns in enumerate(places):
            rows = table.filter(pc.equal(numbers, stream))
            streams[stream] = rows.select([f"s{place}" for place in columns])
        del table
        operator = JoinOperator(spec)
        last = {master: streams.pop(master)}
        for batch in (streams, last):
            yield from operator.process(batch)

    return join


def in_utc(table: pa.Table) -> pa.Table:
    """The table with its instants in UTC: Spark sends the session's zone, and takes only UTC back."""
    schema = pa.schema([field.with_type(utc_type(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)
