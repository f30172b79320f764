"""Times of rows that have not entered the join yet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints
from sparkshed.engine.decode import decode_times, normalise, validity
from sparkshed.planner.physical import StreamExec

#: The time of rows without one: behind all others.
NEVER = 2**63 - 1


def in_order(table: pa.Table, stream: StreamExec) -> tuple[pa.Table, Ints]:
    """The rows of a stream in the order of time, and their times."""
    known = times_of(table, stream)
    order = known.argsort(kind="stable")
    return table.take(pa.array(order)), known.take(order)


def times_of(table: pa.Table | pa.RecordBatch, stream: StreamExec) -> Ints:
    """The time of each row in microseconds; rows without one come last."""
    found = table.column(stream.time)
    whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    column = normalise(whole, stream.types[stream.time])
    known = validity(column)
    if known is None:
        return decode_times(column, stream.types[stream.time])
    times = np.full(len(column), NEVER)
    times[known] = decode_times(column.drop_null(), stream.types[stream.time])
    return times
