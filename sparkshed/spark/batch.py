"""Batch execution: one shuffle into groups, then the engine on each group."""

from __future__ import annotations

import pickle
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import ByteType, IntegerType, StructField, StructType

from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec, Layout, ShedJoinExec
from sparkshed.spark.grouping import GROUP, joiner, learner
from sparkshed.spark.inputs import Inputs
from sparkshed.spark.relaying import relayed
from sparkshed.spark.times import segment_of
from sparkshed.sql.block import JOIN


def execute(plan: ShedJoinExec, inputs: Inputs) -> DataFrame:
    """The operator's output as a lazy DataFrame."""
    if plan.layout.relayed:
        return relayed(plan, inputs, output_schema(plan.spec, inputs))
    rows = inputs.union(_grouped(plan, inputs), [GROUP]).repartitionById(plan.layout.groups, GROUP)
    join = joiner(plan.spec, plan.layout.master, plan.shedding, inputs.slots.places)
    return rows.groupBy(GROUP).applyInArrow(join, output_schema(plan.spec, inputs))


def _grouped(plan: ShedJoinExec, inputs: Inputs) -> list[DataFrame]:
    """The streams, each row once for every group that it belongs to."""
    return [
        frame.selectExpr("*", f"{_group(plan, number)} AS {GROUP}")
        for number, frame in enumerate(inputs.frames)
    ]


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


def output_schema(spec: JoinSpec, inputs: Inputs) -> StructType:
    """Spark's schema of the operator's output."""
    fields = [StructField(c.name, inputs.type_of(c.stream, c.column)) for c in spec.output]
    if spec.beside:
        fields.append(StructField(JOIN, IntegerType()))
    return StructType(fields or [StructField("__row", ByteType())])


def pilot(plan: ShedJoinExec, inputs: Inputs, cuts: tuple[int, ...]) -> Tally | None:
    """What the rows of a few stretches of time teach; None if there are none.

    Args:
        plan: The plan, with what it is to shed.
        inputs: The streams.
        cuts: Times between the stretches; those with odd numbers are looked at. Everything without cuts.
    """
    assert plan.shedding is not None
    layout = Layout(plan.layout.master, cuts=cuts)
    groups = "true" if not cuts else f"{GROUP} % 2 = 1"
    frames = [frame.where(groups) for frame in _grouped(replace(plan, layout=layout), inputs)]
    learn = learner(plan.spec, layout.master, plan.shedding, inputs.slots.places)
    rows = inputs.union(frames, [GROUP]).repartitionById(layout.groups, GROUP)
    found = rows.groupBy(GROUP).applyInArrow(learn, "tally binary").collect()
    return Tally.sum(pickle.loads(row.tally) for row in found)
