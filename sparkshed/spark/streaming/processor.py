"""A host on a Spark worker: blobs of rows and decisions in, blobs of results and a report out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from sparkshed.engine.keeping import PieceKey
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.engine.wire import few_and_large, from_blob
from sparkshed.planner.streaming import StreamingPlan
from sparkshed.spark.streaming.control import DECISION
from sparkshed.spark.streaming.figures import numbers_of

#: Schema of what a host puts out: results, and one report for each micro-batch.
EMITTED = "blob binary, report string, figures array<double>"
#: Results in one blob.
_ROWS, _BYTES = 1 << 17, 8 << 20


class _State:
    """Spark's state store as the engine wants it."""

    def __init__(self, manifest: Any, pieces: Any) -> None:
        self._manifest = manifest
        self._pieces = pieces

    def load(self) -> bytes | None:
        found = self._manifest.get()
        return None if found is None else bytes(found[0])

    def save(self, manifest: bytes) -> None:
        self._manifest.update((manifest,))

    def get(self, key: PieceKey) -> bytes:
        return bytes(self._pieces.getValue(key)[0])

    def put(self, key: PieceKey, blob: bytes) -> None:
        self._pieces.updateValue(key, (blob,))

    def remove(self, key: PieceKey) -> None:
        self._pieces.removeKey(key)


class ShedJoinProcessor(StatefulProcessor):
    """Runs the engine on the rows of one host."""

    def __init__(self, plan: StreamingPlan, name: str, hosts: list[int]) -> None:
        """Take the plan, the name of the query, and the keys of the hosts."""
        self._plan = plan
        self._name = name
        self._hosts = hosts

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        manifest = handle.getValueState("manifest", "data binary")
        pieces = handle.getMapState("pieces", "stream int, window bigint, part int", "blob binary")
        self._state = _State(manifest, pieces)

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        """Rows of static tables are there from the start."""
        for _ in self._join(key, [initialState], None):
            pass

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Join one micro-batch."""
        watermark = timerValues.getCurrentWatermarkInMs() if self._plan.expires else -1
        yield from self._join(key, rows, watermark * 1000 if watermark > 0 else None)

    def _join(self, key: Any, rows: Any, watermark: int | None) -> Iterator[pd.DataFrame]:
        batch: dict[int, list[pa.Table]] = {}
        decision = None
        for frame in rows:
            for stream, blob in zip(frame["stream"], frame["blob"], strict=True):
                if stream == DECISION:
                    decision = json.loads(blob)
                else:
                    batch.setdefault(int(stream), []).append(from_blob(blob))
        host = self._hosts.index(int(key[0]))
        join = StreamingJoin(self._plan, self._name, host, self._state, time.perf_counter)
        results = join.process(batch, decision, watermark)
        for blob in few_and_large(results, _ROWS, _BYTES):
            yield _frame(blob, None, None)
        assert join.report is not None
        yield _frame(None, json.dumps(join.report.to_json()), numbers_of(join.report))

    def close(self) -> None:
        """Nothing is open."""


def _frame(blob: bytes | None, report: str | None, figures: list[float] | None) -> pd.DataFrame:
    return pd.DataFrame({"blob": [blob], "report": [report], "figures": [figures]})
