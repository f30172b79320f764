"""The workloads on the engine itself: one thread, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.planner.physical import StreamExec


def prepare(plan: Path, tables: Sequence[pa.Table]) -> Callable[[], int]:
    """Read a saved plan; the function that is returned runs it and returns the number of results."""
    spec, master = pickle.loads(plan.read_bytes())
    inputs = inputs_of(spec.streams, tables)
    return lambda: feed(JoinOperator(spec), master, inputs)


def inputs_of(streams: Sequence[StreamExec], tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The columns that the plan reads; all of them are plain columns of the tables."""
    return [
        table.select([column.split(".")[-1] for column in stream.columns])
        for stream, table in zip(streams, tables, strict=True)
    ]


def feed(operator: JoinOperator, master: int, inputs: Sequence[pa.Table]) -> int:
    """Join the tables as a group is joined on Spark, master rows last; returns the number of results."""
    last = {master: inputs[master]}
    others = {number: table for number, table in enumerate(inputs) if number != master}
    return sum(results.num_rows for batch in (others, last) for results in operator.process(batch))
