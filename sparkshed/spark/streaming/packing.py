"""Rows as blobs for the hosts, and results as rows again.

Every worker imports this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from sparkshed.engine.wire import batches_of, in_utc, to_blob
from sparkshed.spark.streaming.garbage import leave_out_modules

#: Column: the key of a row's host, NULL for all of them.
HOST = "__shed_host"
#: Rows and bytes in one blob, about.
_ROWS, _BYTES = 1 << 18, 8 << 20


def packer(stream: int, keys: list[int]) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """The function that packs the rows of a stream for the hosts that have the keys."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        leave_out_modules("pack")
        held: list[pa.RecordBatch] = []
        count = size = 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            size += batch.nbytes
            if count >= _ROWS or size >= _BYTES:
                yield from _blobs(held, stream, keys)
                held, count, size = [], 0, 0
        if count:
            yield from _blobs(held, stream, keys)

    return pack


def _blobs(batches: list[pa.RecordBatch], stream: int, keys: list[int]) -> Iterator[pa.RecordBatch]:
    """The rows of each host as one blob."""
    table = in_utc(pa.Table.from_batches(batches))
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
