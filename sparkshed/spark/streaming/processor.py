"""The stateful processor that runs a host.

Spark starts a Python process of its own for every query that asks a processor only for its states, so this
module imports nothing that is not needed for that; the rest is imported when rows come.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

#: Schema of what a host puts out: results, and one report for each micro-batch.
EMITTED = "blob binary, report string, figures array<double>"


class ShedJoinProcessor(StatefulProcessor):
    """Runs the engine on the rows of one host."""

    def __init__(self, plan: bytes, name: str, hosts: list[int], *, expires: bool) -> None:
        """Take the plan as it travels, the name of the query, and the keys of the hosts.

        With `expires`, rows expire by the watermark.
        """
        self._plan = plan
        self._name = name
        self._hosts = hosts
        self._expires = expires

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._client = handle._statefulProcessorApiClient
        self._manifest = handle.getValueState("manifest", "data binary")
        self._pieces = handle.getMapState("pieces", "stream int, window bigint, part int", "blob binary")

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        """Rows of static tables are there from the start."""
        for _ in self._join(key, [initialState], None):
            pass

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Join one micro-batch."""
        # Without timers Spark tells the watermark only if it is asked.
        watermark = self._client.get_timestamps("EventTime")[1] if self._expires else -1
        yield from self._join(key, rows, watermark * 1000 if watermark > 0 else None)

    def _join(self, key: Any, rows: Iterable[pd.DataFrame], watermark: int | None) -> Iterator[pd.DataFrame]:
        from sparkshed.spark.streaming.hosting import State, join

        plan, host = pickle.loads(self._plan), self._hosts.index(int(key[0]))
        state = State(self._manifest, self._pieces)
        yield from join(plan, self._name, host, state, rows, watermark)

    def close(self) -> None:
        """Nothing is open."""
