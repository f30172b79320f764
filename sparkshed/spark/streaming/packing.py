"""Rows as blobs for the hosts, and results as rows again.

Every worker imports this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from sparkshed.engine.routing import packed
from sparkshed.engine.wire import batches_of, in_utc, to_blob
from sparkshed.planner.streaming import StreamingPlan
from sparkshed.spark.streaming.garbage import leave_out_modules

#: Column: the key of a row's host, NULL for all of them.
HOST = "__shed_host"
#: Rows and bytes in one blob, about.
_ROWS, _BYTES = 1 << 18, 8 << 20

Packer = Callable[[Any], Iterator[pa.RecordBatch]]


def packer(stream: int, keys: list[int]) -> Packer:
    """The function that packs the rows of a stream for the hosts that have the keys."""
    return _packing(lambda table: _for_hosts(table, stream, keys))


def tick_packer(stream: int, key: int, plan: StreamingPlan) -> Packer:
    """The function that packs the rows of a stream tick by tick for the router that has the key."""
    return _packing(lambda table: _by_ticks(table, stream, key, plan))


def _packing(blobs: Callable[[pa.Table], Iterator[pa.RecordBatch]]) -> Packer:
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        leave_out_modules("pack")
        held: list[pa.RecordBatch] = []
        count = size = 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            size += batch.nbytes
            if count >= _ROWS or size >= _BYTES:
                yield from blobs(in_utc(pa.Table.from_batches(held)))
                held, count, size = [], 0, 0
        if count:
            yield from blobs(in_utc(pa.Table.from_batches(held)))

    return pack


def _by_ticks(table: pa.Table, stream: int, key: int, plan: StreamingPlan) -> Iterator[pa.RecordBatch]:
    """The rows of each tick as one blob."""
    found = list(packed(table, stream, plan))
    columns = [
        pa.array([key] * len(found), pa.int32()),
        pa.array([stream] * len(found), pa.int32()),
        # Nulls would make numbers of ticks inexact in pandas.
        pa.array([own.tick or 0 for own in found], pa.int64()),
        pa.array([own.tick is not None for own in found], pa.bool_()),
        pa.array([own.rows for own in found], pa.int64()),
        pa.array([own.blob for own in found], pa.binary()),
    ]
    yield pa.RecordBatch.from_arrays(columns, ["host", "stream", "tick", "timed", "rows", "blob"])


def _for_hosts(table: pa.Table, stream: int, keys: list[int]) -> Iterator[pa.RecordBatch]:
    """The rows of each host as one blob."""
    hosts = table.column(HOST)
    table = table.drop_columns([HOST])
    if hosts.null_count == len(hosts) or len(keys) == 1:
        blob = to_blob(table.combine_chunks())
        found = [(key, blob) for key in keys]
    else:
        numbers = hosts.to_numpy()
        parts = [(key, table.filter(pa.array(numbers == key))) for key in keys]
        found = [(key, to_blob(part.combine_chunks())) for key, part in parts if part.num_rows]
    for key, blob in found:
        columns = [pa.array([key], pa.int32()), pa.array([stream], pa.int32()), pa.array([blob], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["host", "stream", "blob"])


def unpack(batches: Any) -> Iterator[pa.RecordBatch]:
    """Results as rows."""
    leave_out_modules("unpack")
    for batch in batches:
        for blob in batch.column(0):
            yield from batches_of(blob.as_buffer())
