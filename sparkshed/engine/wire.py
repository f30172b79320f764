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


def in_utc(table: pa.Table) -> pa.Table:
    """The table with its instants in UTC: Spark sends the session's zone, and takes only UTC back."""
    schema = pa.schema([field.with_type(utc_type(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def utc_type(type_: pa.DataType) -> pa.DataType:
    """The type with all its instants in UTC: Spark sends them in the session's zone."""
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(utc_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(utc_type(type_.value_type)))
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(key.with_type(utc_type(key.type)), item.with_type(utc_type(item.type)))
    return type_
