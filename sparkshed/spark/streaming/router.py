"""The stateful processor that routes, in front of the hosts.

Spark starts a Python process of its own that asks a processor only for its states, so this module imports
nothing that is not needed for that; the rest is imported when rows come.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from sparkshed.engine.routing import Packed, Sent

#: Blobs in one frame, and their bytes, about.
_BLOBS, _BYTES = 256, 8 << 20


class RouterProcessor(StatefulProcessor):
    """Runs the router of a join."""

    def __init__(self, plan: bytes, keys: list[int], *, expires: bool) -> None:
        """Take the plan as it travels, and the keys of the hosts, lane by lane.

        With `expires`, rows can be late.
        """
        self._plan = plan
        self._keys = keys
        self._expires = expires

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._client = handle._statefulProcessorApiClient
        self._notes = handle.getValueState("notes", "data binary")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Route one micro-batch."""
        from sparkshed.engine.kinds import DECISION
        from sparkshed.engine.routers import routing_of
        from sparkshed.spark.streaming.garbage import leave_out_modules

        leave_out_modules("route")
        # Without timers Spark tells the watermark only if it is asked.
        watermark = self._client.get_timestamps("EventTime")[1] if self._expires else -1
        decision, packets = None, []
        for packet in _packets(rows):
            if packet.stream == DECISION:
                decision = json.loads(packet.blob)
            else:
                packets.append(packet)
        stage = routing_of(pickle.loads(self._plan), _Notebook(self._notes), time.perf_counter)
        sent = stage.process(packets, decision, watermark * 1000 if watermark > 0 else None)
        yield from frames_of(sent, self._keys)

    def close(self) -> None:
        """Nothing is open."""


class _Notebook:
    """Spark's state as the engine wants it."""

    def __init__(self, notes: Any) -> None:
        self._notes = notes

    def load(self) -> bytes | None:
        found = self._notes.get()
        return None if found is None else bytes(found[0])

    def save(self, notes: bytes) -> None:
        self._notes.update((notes,))


def _packets(frames: Iterable[pd.DataFrame]) -> Iterator[Packed]:
    from sparkshed.engine.routing import Packed

    for frame in frames:
        columns = (frame[name] for name in ("stream", "tick", "timed", "blob", "rows"))
        for stream, tick, timed, blob, rows in zip(*columns, strict=True):
            yield Packed(int(stream), int(tick) if timed else None, blob, int(rows))


def frames_of(sent: Iterable[Sent], keys: list[int]) -> Iterator[pd.DataFrame]:
    """Few frames of many blobs."""
    import pandas as pd

    def frame() -> pd.DataFrame:
        rows = [(keys[own.host], own.stage, own.stream, own.header, own.blob) for own in held]
        return pd.DataFrame(rows, columns=["host", "stage", "stream", "header", "blob"])

    held: list[Sent] = []
    size = 0
    for own in sent:
        held.append(own)
        size += len(own.blob)
        if len(held) >= _BLOBS or size >= _BYTES:
            yield frame()
            held, size = [], 0
    if held:
        yield frame()
