"""The inputs of a join as one Spark DataFrame.

Streams have different columns; a union wants the same ones. Columns of the same type share a slot:

    stream a: ts timestamp, x double            slots: timestamp 0 | double 0 | double 1 | string 0
    stream b: ts timestamp, x double, y double         a: ts       | x        | NULL     | NULL
    stream c: ts timestamp, s string                   b: ts       | x        | y        | NULL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from sparkshed.spark.catalog import RunSql
from sparkshed.spark.grouping import STREAM
from sparkshed.sql.block import JoinBlock, Stream
from sparkshed.sql.errors import PlanError

_NESTED = ("struct", "array", "map")


@dataclass(frozen=True)
class Slots:
    """Where each stream's input columns stand in the union: `places[i][c]` is a slot number."""

    types: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(types_by_stream: Sequence[Sequence[str]]) -> Slots:
        """Share slots among columns of the same type.

        >>> Slots.of([["int", "int"], ["string", "int"]]).places
        ((0, 1), (2, 0))
        """
        slots: list[tuple[str, int]] = []
        places = []
        for types in types_by_stream:
            seen: dict[str, int] = {}
            row = []
            for type_ in types:
                slot = (type_, seen.get(type_, 0))
                seen[type_] = slot[1] + 1
                if slot not in slots:
                    slots.append(slot)
                row.append(slots.index(slot))
            places.append(tuple(row))
        return Slots(tuple(type_ for type_, _ in slots), tuple(places))


@dataclass(frozen=True)
class Inputs:
    """One DataFrame per stream, columns `c0, c1, …` being its inputs."""

    frames: tuple[DataFrame, ...]
    slots: Slots

    @property
    def streaming(self) -> bool:
        """Whether one of them is a stream."""
        return any(frame.isStreaming for frame in self.frames)

    def type_of(self, stream: int, column: int) -> DataType:
        """Spark's type of an input, with NULL allowed everywhere: other streams have NULL in its slot."""
        return _nullable(self.frames[stream].schema.fields[column].dataType)

    def union(self, frames: Sequence[DataFrame], extra: Sequence[str] = ()) -> DataFrame:
        """All streams in one DataFrame: the stream's number, extra columns, the slots."""
        parts = [
            frame.select(F.expr(f"{number} AS {STREAM}"), *extra, *self._slot_columns(number))
            for number, frame in enumerate(frames)
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        return whole

    def _slot_columns(self, stream: int) -> list[Column]:
        places = self.slots.places[stream]
        columns = []
        for slot, type_ in enumerate(self.slots.types):
            source = f"c{places.index(slot)}" if slot in places else "NULL"
            if type_.startswith(_NESTED):
                # Written as text, a type with unusual field names would not be read back.
                columns.append(F.expr(source).cast(self._slot_type(slot)).alias(f"s{slot}"))
            elif slot in places:
                columns.append(F.expr(f"{source} AS s{slot}"))
            else:
                columns.append(F.expr(f"CAST(NULL AS {type_}) AS s{slot}"))
        return columns

    def _slot_type(self, slot: int) -> DataType:
        for number, places in enumerate(self.slots.places):
            if slot in places:
                return self.type_of(number, places.index(slot))
        raise AssertionError(slot)


def read_inputs(block: JoinBlock, run: RunSql) -> Inputs:
    """Spark's part below the join: relations, their filters, and the computed columns."""
    frames = []
    for stream in block.streams:
        columns = ", ".join(f"{column.sql} AS c{number}" for number, column in enumerate(stream.inputs))
        conditions = [f"({text})" for text in stream.filters]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        frame = run(f"{block.with_}SELECT {columns} FROM {stream.relation}{where}")
        _check_types(stream, frame)
        frames.append(frame)
    if not any(frame.isStreaming for frame in frames):
        # Streams keep rows without a time, to count them.
        frames = [_with_times(frame, stream) for frame, stream in zip(frames, block.streams, strict=True)]
    slots = Slots.of([[column.type for column in stream.inputs] for stream in block.streams])
    return Inputs(tuple(frames), slots)


def _with_times(frame: DataFrame, stream: Stream) -> DataFrame:
    if stream.time is None or stream.strict_time:
        return frame
    return frame.where(F.col(f"c{stream.time}").isNotNull())


def _check_types(stream: Stream, frame: DataFrame) -> None:
    """Refuse columns that cannot cross to Python workers, naming them."""
    for column, field in zip(stream.inputs, frame.schema.fields, strict=True):
        if not _crosses(field.dataType):
            name = column.sql.replace("`", "")
            msg = (
                f"column {name} has the type {column.type}, which Spark cannot send to Python workers. "
                f"Cast it in a sub-query, for example (SELECT *, CAST({name.split('.')[-1]} AS STRING) AS "
                f"text FROM …) {stream.name}, and use that."
            )
            raise PlanError(msg)


def _crosses(type_: DataType, *, nested: bool = False) -> bool:
    """Whether Spark sends the type: not intervals of months, nor times of day within other values."""
    if isinstance(type_, StructType):
        return all(_crosses(field.dataType, nested=True) for field in type_.fields)
    if isinstance(type_, ArrayType):
        return _crosses(type_.elementType, nested=True)
    if isinstance(type_, MapType):
        return _crosses(type_.keyType, nested=True) and _crosses(type_.valueType, nested=True)
    if nested and type_.typeName() == "time":
        return False
    return not isinstance(type_, (YearMonthIntervalType, CalendarIntervalType))


def _nullable(type_: DataType) -> DataType:
    """The type with NULL allowed on every level, except in keys of maps."""
    if isinstance(type_, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType)) for f in type_.fields])
    if isinstance(type_, ArrayType):
        return ArrayType(_nullable(type_.elementType), True)
    if isinstance(type_, MapType):
        return MapType(_nullable(type_.keyType), _nullable(type_.valueType), True)
    return type_
