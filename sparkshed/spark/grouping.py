"""What workers do with the rows of one group.

Every worker imports this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.group import join_group, pilot_group
from sparkshed.engine.wire import in_utc
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.shedding import Shedding

#: Columns: the number of a row's group, and of its stream.
GROUP, STREAM = "__shed_group", "__shed_stream"

Places = tuple[tuple[int, ...], ...]
Worker = Callable[[Any], Iterator[pa.RecordBatch]]


def joiner(spec: JoinSpec, master: int, shedding: Shedding | None, places: Places) -> Worker:
    """The function that joins one group.

    Args:
        spec: The join.
        master: The stream whose rows are in one group only.
        shedding: What is shed.
        places: For each stream, which of the common columns its columns are.
    """

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, streams = _by_stream(batches, places)
        yield from join_group(spec, master, streams, shedding, number)

    return join


def learner(spec: JoinSpec, master: int, shedding: Shedding, places: Places) -> Worker:
    """The function that learns from one group; arguments as for :func:`joiner`."""

    def learn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, streams = _by_stream(batches, places)
        tally = pilot_group(spec, master, streams, shedding, number)
        yield pa.RecordBatch.from_pydict({"tally": [pickle.dumps(tally)]})

    return learn


def _by_stream(batches: Iterator[pa.RecordBatch], places: Places) -> tuple[int, dict[int, pa.Table]]:
    """The number of a group, and its rows by stream."""
    table = in_utc(pa.Table.from_batches(batches))
    numbers = table.column(STREAM)
    streams = {}
    for stream, columns in enumerate(places):
        rows = table.filter(pc.equal(numbers, stream))
        streams[stream] = rows.select([f"s{place}" for place in columns])
    return table.column(GROUP)[0].as_py(), streams
