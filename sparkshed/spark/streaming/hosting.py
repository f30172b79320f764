"""A host on a Spark worker: blobs of rows and decisions in, blobs of results and a report out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from sparkshed.engine.keeping import PieceKey
from sparkshed.engine.kinds import DECISION, TOLD
from sparkshed.engine.routing import Sent, as_told
from sparkshed.engine.streaming import StreamingJoin
from sparkshed.engine.wire import few_and_large, from_blob
from sparkshed.planner.streaming import Report, StreamingPlan
from sparkshed.spark.streaming.figures import numbers_of
from sparkshed.spark.streaming.garbage import leave_out_modules

#: Results in one blob.
_ROWS, _BYTES = 1 << 17, 8 << 20


class State:
    """Spark's state store as the engine wants it."""

    def __init__(self, manifest: Any, pieces: Any) -> None:
        """Take the two states of the processor."""
        self._manifest = manifest
        self._pieces = pieces

    def load(self) -> bytes | None:
        """The manifest, None before the first one."""
        found = self._manifest.get()
        return None if found is None else bytes(found[0])

    def save(self, manifest: bytes) -> None:
        """Replace the manifest."""
        self._manifest.update((manifest,))

    def get(self, key: PieceKey) -> bytes:
        """A piece."""
        return bytes(self._pieces.getValue(key)[0])

    def put(self, key: PieceKey, blob: bytes) -> None:
        """Add or replace a piece."""
        self._pieces.updateValue(key, (blob,))

    def remove(self, key: PieceKey) -> None:
        """Remove a piece."""
        self._pieces.removeKey(key)


def join(
    plan: StreamingPlan,
    name: str,
    host: int,
    state: State,
    frames: Iterable[pd.DataFrame],
    watermark: int | None,
) -> Iterator[pd.DataFrame]:
    """Join one micro-batch of a host."""
    leave_out_modules("join")
    batch: dict[int, list[pa.Table]] = {}
    decision = told = None
    for frame in frames:
        for stream, blob in zip(frame["stream"], frame["blob"], strict=True):
            if stream == DECISION:
                decision = json.loads(blob)["decision"]
            elif stream == TOLD:
                told = json.loads(blob)
                watermark = told["watermark"]
            else:
                batch.setdefault(int(stream), []).append(from_blob(blob))
    own = StreamingJoin(plan, name, host, state, time.perf_counter)
    for blob in few_and_large(own.process(batch, decision, watermark), _ROWS, _BYTES):
        yield _frame(blob, None, None)
    assert own.report is not None
    if told is not None:
        as_told(own.report, told)
    yield _frame(None, json.dumps(own.report.to_json()), numbers_of(plan, own.report))


def emitted(plan: StreamingPlan, found: Iterable[Sent | pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """What the last of several stages puts out: results, and the reports of all stages."""
    reports: list[bytes] = []

    def results() -> Iterator[pa.RecordBatch]:
        for own in found:
            if isinstance(own, Sent):
                reports.append(own.blob)
            else:
                yield own

    for blob in few_and_large(results(), _ROWS, _BYTES):
        yield _frame(blob, None, None)
    for text in reports:
        yield _frame(None, text.decode(), numbers_of(plan, Report.from_json(json.loads(text))))


def _frame(blob: bytes | None, report: str | None, figures: list[float] | None) -> pd.DataFrame:
    return pd.DataFrame({"blob": [blob], "report": [report], "figures": [figures]})
