"""Rows as blobs: Arrow's own format, which keeps every type and costs nothing per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def to_blob(table: pa.Table) -> bytes:
    """The rows of a table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_blob(blob: bytes) -> pa.Table:
    """The rows again."""
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()


def batches_of(blob: bytes) -> Iterator[pa.RecordBatch]:
    """The rows again, batch by batch."""
    with pa.ipc.open_stream(blob) as reader:
        yield from reader


def few_and_large(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[bytes]:
    """Blobs of about so many rows or bytes each, made of batches that may be small.

    >>> small = [pa.record_batch({"x": [n]}) for n in range(5)]
    >>> [from_blob(blob).num_rows for blob in few_and_large(small, 2, 1 << 20)]
    [2, 2, 1]
    """
    held: list[pa.RecordBatch] = []
    count = weight = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        count += batch.num_rows
        weight += batch.nbytes
        if count >= rows or weight >= size:
            yield to_blob(pa.Table.from_batches(held))
            held, count, weight = [], 0, 0
    if held:
        yield to_blob(pa.Table.from_batches(held))
