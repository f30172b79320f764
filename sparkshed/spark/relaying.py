"""Batch joins that go from group to group: each stretch of time has the rows of all streams in it, once.

    master rows ─▶ groups of hop 1 ─▶ partial results ─▶ groups of hop 2 ─▶ … ─▶ results
                   rows of R_1                           rows of R_2

Nothing but partial results is copied: to each group in which a partner may be.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from sparkshed.planner.physical import ShedJoinExec
from sparkshed.spark.grouping import GROUP, STREAM
from sparkshed.spark.hopping import PARTIAL, hopper, name_of, used_of
from sparkshed.spark.inputs import Inputs
from sparkshed.spark.times import segment_of


def relayed(plan: ShedJoinExec, inputs: Inputs, results: StructType) -> DataFrame:
    """The operator's output as a lazy DataFrame, with the columns of `results`."""
    spec, layout = plan.spec, plan.layout
    order = spec.orders[layout.master]
    partials = _rows(plan, inputs, layout.master, order[0]).withColumn(STREAM, F.lit(PARTIAL))
    for number, target in enumerate(order):
        rows = _rows(plan, inputs, target, target).withColumn(STREAM, F.lit(target))
        both = partials.unionByName(rows, allowMissingColumns=True).repartitionById(layout.groups, GROUP)
        last = number == len(order) - 1
        schema = results if last else _schema(plan, inputs, (layout.master, *order[: number + 1]))
        partials = both.groupBy(GROUP).applyInArrow(hopper(spec, layout, number), schema)
    return partials


def _rows(plan: ShedJoinExec, inputs: Inputs, stream: int, target: int) -> DataFrame:
    """The rows of a stream, in each group that has rows of the target for them."""
    own = plan.spec.streams[stream]
    columns = [
        F.col(f"c{column}").cast(inputs.type_of(stream, column)).alias(name_of(stream, column))
        for column, _ in enumerate(own.columns)
    ]
    return inputs.frames[stream].select(F.expr(_groups(plan, stream, target)).alias(GROUP), *columns)


def _groups(plan: ShedJoinExec, stream: int, target: int) -> str:
    """SQL for the groups of a row."""
    cuts, bounds = plan.layout.cuts, plan.spec.bounds
    own = plan.spec.streams[stream]
    column, type_ = f"c{own.time}", own.types[own.time]
    if stream == target:
        return segment_of(column, cuts, type_)
    past, future = bounds[stream][target], bounds[target][stream]
    # A row of the target at T_R can meet this one iff T - past <= T_R <= T + future.
    first = "0" if past is None else segment_of(column, cuts, type_, past)
    last = str(len(cuts)) if future is None else segment_of(column, cuts, type_, -future)
    return f"explode(sequence({first}, greatest({first}, {last})))"


def _schema(plan: ShedJoinExec, inputs: Inputs, joined: tuple[int, ...]) -> StructType:
    used = used_of(plan.spec)
    fields = [StructField(GROUP, IntegerType()), StructField(STREAM, IntegerType())]
    for stream in joined:
        fields += [
            StructField(name_of(stream, column), inputs.type_of(stream, column)) for column in used[stream]
        ]
    return StructType(fields)
