"""The physical plan of a streaming join, as one streaming DataFrame.

stream i ─ mapInArrow(pack) ─┐   rows (host, stream, blob)
stream j ─ mapInArrow(pack) ─┤
decisions of the driver ─────┴▶ union ▶ groupBy(host).transformWithStateInPandas
▶ observe(reports) ▶ results only ▶ mapInArrow(unpack)

Where a router says which host rows go to, it is another stage with state, between the union and the hosts.
"""

from __future__ import annotations

import json

import pyspark.sql.functions as F
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructField, StructType

from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.planner import Planned
from sparkshed.planner.streaming import Hosts, StreamingPlan
from sparkshed.planner.summary import summary_of
from sparkshed.spark.batch import output_schema
from sparkshed.spark.inputs import Inputs
from sparkshed.spark.streaming.control import PACKED, SOURCE
from sparkshed.spark.streaming.driver import listen, register
from sparkshed.spark.streaming.figures import observed_of
from sparkshed.spark.streaming.listening import REPORTS
from sparkshed.spark.streaming.packing import HOST, packer, tick_packer, unpack
from sparkshed.spark.streaming.processor import EMITTED, ShedJoinProcessor
from sparkshed.spark.streaming.relay import MAIL, RelayProcessor
from sparkshed.spark.streaming.router import RouterProcessor
from sparkshed.spark.streaming.starting import install_starting
from sparkshed.spark.streaming.watermarks import DELAY, has_watermark, held_back
from sparkshed.sql.block import JOIN, JoinBlock
from sparkshed.sql.rewrite import output_name, struct_name

#: Schema of what goes to a router, and decisions in it.
TICKS = "host int, stream int, tick bigint, timed boolean, rows bigint, blob binary"
_AS_TICKS = ("host", "stream", "0L AS tick", "true AS timed", "0L AS rows", "blob")


def execute_streaming(planned: Planned, inputs: Inputs, session: SparkSession) -> DataFrame:
    """The operator's output as a streaming DataFrame, one array of one struct for each stream."""
    plan, block = planned.physical.streaming, planned.logical.block
    assert plan is not None
    keys, routed = host_keys(plan.hosts.count, plan.hosts.lanes), plan.hosts.router is not None
    controller = register(plan, block.hint.boost, summary_of(planned))
    name = controller.name
    listen(session)
    install_starting()
    packed, tables = [], []
    for number, frame in enumerate(inputs.frames):
        if plan.regain:
            frame = held_back(frame, plan.regain)
        if routed and not plan.static[number]:
            packed.append(frame.mapInArrow(tick_packer(number, keys[0], plan), TICKS))
        else:
            own = _packed(plan.hosts, number, frame, plan.spec, keys)
            (tables if plan.static[number] else packed).append(own)
    if controller.channel is not None:
        source = session.readStream.format(SOURCE).option("path", controller.channel.path)
        told = source.option("hosts", json.dumps(keys[:1] if routed else keys)).load()
        packed.append(told.selectExpr(*_AS_TICKS) if routed else told)
    whole = _together(packed)
    if routed:
        router = RouterProcessor(cloudpickle.dumps(plan), keys, expires=plan.expires)
        whole = _stage(whole, router, MAIL)
    emitted = _joined(plan, name, keys, whole, _together(tables) if tables else None)
    observed = emitted.observe(name, *_observed(plan))
    blobs = observed.where("blob IS NOT NULL").select("blob")
    results = blobs.mapInArrow(unpack, _schema(plan.spec, inputs))
    return results.select(*_structs(block, plan.spec))


def _joined(
    plan: StreamingPlan, name: str, keys: list[int], whole: DataFrame, tables: DataFrame | None
) -> DataFrame:
    """What the hosts put out: each joins all of its rows, or hosts hand partial results on to each other."""
    own = cloudpickle.dumps(plan.of_hosts)
    if plan.hosts.routing != "ctr":
        # A router tells the watermark.
        expires = plan.expires and plan.hosts.router is None
        return _stage(whole, ShedJoinProcessor(own, name, keys, expires=expires), EMITTED, tables)
    last = len(plan.spec.streams) - 2
    for stage in range(last + 1):
        processor = RelayProcessor(own, name, keys, stage, last=stage == last)
        whole = _stage(whole, processor, EMITTED if stage == last else MAIL)
    return whole


def _stage(
    whole: DataFrame, processor: StatefulProcessor, schema: str, tables: DataFrame | None = None
) -> DataFrame:
    """An operator with state for each host."""
    return whole.groupBy("host").transformWithStateInPandas(
        processor,
        schema,
        outputMode="append",
        # Nothing here has timers, and Spark sets up what they would need several times for every micro-batch.
        timeMode="None",
        initialState=None if tables is None else tables.groupBy("host"),
    )


def _together(parts: list[DataFrame]) -> DataFrame:
    whole, *more = parts
    for part in more:
        whole = whole.unionAll(part)
    return whole


def host_keys(count: int, lanes: int = 1) -> list[int]:
    """Keys that Spark's hash partitioning sends to as many different partitions, lane by lane.

    >>> host_keys(2), host_keys(2, 2)
    ([2, 0], [2, 0, 4, 1])
    """
    keys: list[list[int]] = [[] for _ in range(count)]
    key = 0
    while any(len(own) < lanes for own in keys):
        keys[_spark_hash(key) % count].append(key)
        key += 1
    return [own[lane] for lane in range(lanes) for own in keys]


def _spark_hash(value: int) -> int:
    """Spark's `hash` of an INT: Murmur3 with seed 42, one word.

    >>> _spark_hash(0), _spark_hash(1)
    (933211791, -559580957)
    """
    mask = 0xFFFFFFFF
    word = value * 0xCC9E2D51 & mask
    word = (word << 15 | word >> 17) * 0x1B873593 & mask
    mixed = 42 ^ word
    mixed = ((mixed << 13 | mixed >> 19) & mask) * 5 + 0xE6546B64 & mask
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & mask
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & mask
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _packed(hosts: Hosts, stream: int, frame: DataFrame, spec: JoinSpec, keys: list[int]) -> DataFrame:
    routed = frame.selectExpr("*", f"{_host(hosts, stream, spec, keys)} AS {HOST}")
    return routed.mapInArrow(packer(stream, keys), PACKED)


def _host(hosts: Hosts, stream: int, spec: JoinSpec, keys: list[int]) -> str:
    """SQL for the key of a row's host; NULL is all of them."""
    if hosts.count == 1:
        return str(keys[0])
    if hosts.router is not None:
        return "CAST(NULL AS INT)"
    options = f"array({', '.join(map(str, keys))})"
    if hosts.keys is not None:
        return f"element_at({options}, CAST(pmod(hash(c{hosts.keys[stream]}), {hosts.count}) AS INT) + 1)"
    if stream != hosts.master:
        return "CAST(NULL AS INT)"
    own = spec.streams[stream]
    micros = _micros(f"c{own.time}", own.types[own.time])
    segment = f"coalesce({micros} div {hosts.segment}, 0)"
    return f"element_at({options}, CAST(pmod({segment}, {hosts.count}) AS INT) + 1)"


def _micros(column: str, type_: str) -> str:
    if type_ == "date":
        return f"(unix_date({column}) * 86400000000L)"
    return f"unix_micros(CAST({column} AS TIMESTAMP))"


def _schema(spec: JoinSpec, inputs: Inputs) -> StructType:
    """The output columns; times that had a watermark have it again."""
    fields = output_schema(spec, inputs).fields
    for number, column in enumerate(spec.output):
        frame, name, own = inputs.frames[column.stream], f"c{column.column}", fields[number]
        delay = {DELAY: frame.schema[name].metadata[DELAY]} if has_watermark(frame, name) else {}
        fields[number] = StructField(own.name, own.dataType, own.nullable, delay)
    return StructType(fields)


def _structs(block: JoinBlock, spec: JoinSpec) -> list[Column]:
    """One array of one struct for each stream, for LATERAL VIEW inline."""
    columns = [F.col(JOIN)] if spec.beside else []
    for number, stream in enumerate(block.streams):
        if stream.payload:
            fields = [F.col(output_name(number, own.column)).alias(own.name) for own in stream.payload]
            columns.append(F.array(F.struct(*fields)).alias(struct_name(number)))
    return columns or [F.col("__row")]


def _observed(plan: StreamingPlan) -> list[Column]:
    """What other listeners see, beside the reports themselves."""
    columns = [F.expr(text).alias(name) for name, text in observed_of(plan).items()]
    return [*columns, F.collect_list("report").alias(REPORTS)]
