"""The times of rows that are not in a store yet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Ints
from sparkshed.engine.decode import decode_times, normalise, validity
from sparkshed.planner.physical import StreamExec

#: The time of rows without one: behind all others.
NEVER = 2**63 - 1


def times_of(table: pa.Table, stream: StreamExec) -> Ints:
    """The time of each row in microseconds; rows without one come last."""
    column = normalise(table.column(stream.time).combine_chunks(), stream.types[stream.time])
    known = validity(column)
    if known is None:
        return decode_times(column, stream.types[stream.time])
    times = np.full(len(column), NEVER)
    times[known] = decode_times(column.drop_null(), stream.types[stream.time])
    return times
