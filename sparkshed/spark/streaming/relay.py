"""The stateful processor of one stage of a join that goes from host to host.

Spark starts a Python process of its own that asks a processor only for its states, so this module imports
nothing that is not needed for that; the rest is imported when rows come.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from sparkshed.engine.routing import Sent

#: Schema of what travels between stages.
MAIL = "host int, stage int, stream int, header string, blob binary"


class RelayProcessor(StatefulProcessor):
    """Runs a stage of the engine on one host."""

    def __init__(self, plan: bytes, name: str, keys: list[int], stage: int, *, last: bool) -> None:
        """Take the plan as it travels, the name of the query, the keys of the hosts, and the stage."""
        self._plan = plan
        self._name = name
        self._keys = keys
        self._stage = stage
        self._last = last

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._manifest = handle.getValueState("manifest", "data binary")
        self._pieces = handle.getMapState("pieces", "stream int, window bigint, part int", "blob binary")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Make a hop."""
        from sparkshed.engine.relaying import RelayHost
        from sparkshed.spark.streaming.garbage import leave_out_modules
        from sparkshed.spark.streaming.hosting import State
        from sparkshed.spark.streaming.router import frames_of

        leave_out_modules("relay")
        plan, host = pickle.loads(self._plan), self._keys.index(int(key[0]))
        state = State(self._manifest, self._pieces)
        own = RelayHost(plan, self._name, host, self._stage, state, time.perf_counter)
        # All of it is read before anything goes on.
        found = own.process(list(self._mail(rows)))
        if self._last:
            from sparkshed.spark.streaming.hosting import emitted

            yield from emitted(plan, found)
        else:
            yield from frames_of(self._passed(found), self._keys)

    def _mail(self, frames: Iterable[pd.DataFrame]) -> Iterator[Sent]:
        from sparkshed.engine.routing import Sent

        for frame in frames:
            columns = (frame[name] for name in ("host", "stream", "blob", "stage", "header"))
            for host, stream, blob, stage, header in zip(*columns, strict=True):
                yield Sent(self._keys.index(int(host)), int(stream), blob, int(stage), header)

    @staticmethod
    def _passed(found: Iterable[Sent | pa.RecordBatch]) -> Iterator[Sent]:
        from sparkshed.engine.routing import Sent

        for own in found:
            assert isinstance(own, Sent)
            yield own

    def close(self) -> None:
        """Nothing is open."""
