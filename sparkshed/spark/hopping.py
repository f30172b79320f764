"""What workers do in one hop of a batch join that goes from group to group.

Every worker imports this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import INT64_MAX, INT64_MIN
from sparkshed.engine.hopping import HopOperator, Probe
from sparkshed.engine.needs import used_columns
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import Span
from sparkshed.engine.wire import in_utc
from sparkshed.planner.physical import JoinSpec, Layout
from sparkshed.spark.grouping import GROUP, STREAM

#: In the place of the number of a stream: partial results.
PARTIAL = -1
#: Copies of partial results that are made at a time.
_PIECE = 1 << 17
_ANY = (Span(INT64_MIN, INT64_MAX),)


def name_of(stream: int, column: int) -> str:
    """The column of a stream's column in rows and partial results."""
    return f"p{stream}_{column}"


def used_of(spec: JoinSpec) -> list[list[int]]:
    """The columns of each stream that travel."""
    return [
        sorted({*used, stream.time}) for used, stream in zip(used_columns(spec), spec.streams, strict=True)
    ]


def hopper(spec: JoinSpec, layout: Layout, number: int) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """The function that makes a hop in one group.

    Args:
        spec: The join.
        layout: Its groups.
        number: Of the hop, in the order of the master.
    """
    order = spec.orders[layout.master]
    used = used_of(spec)

    def hop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = in_utc(pa.Table.from_batches(batches))
        streams = table.column(STREAM)
        operator = HopOperator(spec)
        target = order[number]
        rows = table.filter(pc.equal(streams, target)).select(
            [name_of(target, column) for column, _ in enumerate(spec.streams[target].columns)]
        )
        for _ in operator.process({target: rows}, []):
            pass
        partials = _partials(table.filter(pc.equal(streams, PARTIAL)))
        for probe, found in operator.process({}, [Probe(layout.master, order, number, _ANY, partials)]):
            if probe.is_last:
                yield operator.results(found)
            else:
                yield from _onward(operator, found.joined(), order[number + 1])

    def _partials(table: pa.Table) -> pa.Table:
        if number == 0:
            own = layout.master
            return table.select([name_of(own, column) for column, _ in enumerate(spec.streams[own].columns)])
        joined = (layout.master, *order[:number])
        columns = [(stream, column) for stream in joined for column in used[stream]]
        return table.select([name_of(*own) for own in columns]).rename_columns(
            [f"{stream}.{column}" for stream, column in columns]
        )

    def _onward(operator: HopOperator, found: Partials | Candidates, target: int) -> Iterator[pa.RecordBatch]:
        """Partial results, once for each group with rows of the next target that they can meet."""
        partials = found.joined()
        first, last = _segments(partials, target)
        copies = last - first + 1
        picks = np.repeat(np.arange(partials.size), copies)
        groups = np.arange(len(picks)) - np.repeat(np.cumsum(copies) - copies, copies) + first.take(picks)
        for begin in range(0, len(picks), _PIECE):
            piece = slice(begin, begin + _PIECE)
            plain = operator.snapshot(partials.select(picks[piece]))
            names = [name_of(*map(int, name.split("."))) for name in plain.column_names]
            own = pa.array(groups[piece].astype(np.int32))
            fixed = [own, pa.array(np.full(len(own), PARTIAL, np.int32))]
            joined = pa.table([*fixed, *plain.columns], names=[GROUP, STREAM, *names])
            yield from joined.combine_chunks().to_batches()

    def _segments(partials: Partials, target: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        cuts = np.array(layout.cuts, np.int64)
        low, high = partials.reach(target, spec.bounds)
        first = cuts.searchsorted(low, "right")
        return first, np.maximum(first, cuts.searchsorted(high, "right"))

    return hop
