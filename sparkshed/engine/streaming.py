"""One host of a streaming join: a micro-batch in, results and a report out, and nothing forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from operator import sub
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.group import derived, strategy_of, together
from sparkshed.engine.host import Host, Live
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.pacing import efforts_of
from sparkshed.engine.statistics import Statistics
from sparkshed.engine.steering import Steering
from sparkshed.engine.strategies.evicting import drop_of, limit_of
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.timing import times_of
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.streaming import Report


class StreamingJoin(Host[JoinOperator]):
    """One micro-batch of one host that joins all of its rows."""

    def _anew(self) -> Live[JoinOperator]:
        plan, shedding = self._plan, self._plan.shedding
        strategy = None
        seed = (0, self._host)
        if shedding is not None:
            seed = (self._seed, self._host)
            strategy = strategy_of(shedding, shedding.configuration, seed)
        operator = JoinOperator(plan.spec, strategy, derived(seed))
        adapter = None
        if shedding is not None and (plan.follows or shedding.budget < 1):
            adapter = shedding.adapter(plan.spec)
            if self._manifest.adapted is not None:
                adapter.recall(self._manifest.adapted)
        return Live("", operator, adapter)

    def process(
        self, batch: Mapping[int, Sequence[pa.Table]], decision: dict[str, Any] | None, watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Join a micro-batch; when all results were read, the state is written and `report` is there.

        Args:
            batch: Rows by stream, in any number of tables.
            decision: A new decision of the driver.
            watermark: Spark's watermark in microseconds; None before there is one.
        """
        operator = self._live.operator
        before = deepcopy(operator.statistics)
        steering = self._steering(decision)
        late = [0] * len(self._plan.spec.streams)
        watermark = self._expire(watermark)
        rows = {}
        for stream, tables in batch.items():
            table = pa.concat_tables(tables, promote_options="permissive")
            rows[stream], late[stream] = self._in_time(stream, table, watermark)
        completeness, entered = Completeness(), [[np.empty(0, np.int64)] for _ in late]
        joining = 0.0
        for portion in steering.begin(rows):
            before_it, began = efforts_of(operator.statistics), self._clock() - self._keeper.read_seconds
            for some in together(self._plan.spec, portion) if operator.strategy.holds else (portion,):
                yield from operator.process(some)
                completeness += operator.completeness
                for rows_of, newest in zip(entered, operator.newest, strict=True):
                    rows_of.append(np.arange(*newest))
            joining += self._clock() - self._keeper.read_seconds - began
            steering.go_on(portion, list(map(sub, efforts_of(operator.statistics), before_it)))
        self._keeper.add(operator, list(map(np.concatenate, entered)))
        self._keeper.note(operator)
        operator.tidy()
        steering.end()
        self._commit()
        self.report = self._reported(operator.statistics.since(before), late, steering, completeness, joining)

    def _reported(
        self,
        counted: Statistics,
        late: Sequence[int],
        steering: Steering,
        completeness: Completeness,
        joining: float,
    ) -> Report:
        """What this host did in the micro-batch."""
        operator, manifest = self._live.operator, self._manifest
        last = manifest.decision or {"version": 0, "figures": {}}
        return Report(
            host=self._host,
            version=last["version"],
            throttle=steering.throttle,
            streams=self._counts(counted, late),
            work=[direction.work for direction in counted.directions],
            effort=sum(efforts_of(counted)),
            completeness=completeness,
            tally=steering.tally or operator.strategy.take(),
            rows=operator.window_rows,
            memory=limit_of(operator.strategy),
            drop=drop_of(operator.strategy),
            state_bytes=manifest.size,
            reads=self._keeper.reads,
            read_bytes=self._keeper.read_bytes,
            seconds=self._clock() - self._started,
            joining=joining,
            figures=last["figures"],
            received=sum(own.arrived for own in counted.streams) + sum(late),
        )

    def _counts(self, counted: Statistics, late: Sequence[int]) -> list[dict[str, float]]:
        """Rows of each stream by what became of them; those of tables never arrived, so none expire."""
        streams: list[dict[str, float]] = []
        for own, lost, static in zip(counted.streams, late, self._plan.static, strict=True):
            kinds = {**asdict(own), "arrived": own.arrived + lost, "late": lost}
            kinds["joined"] = own.arrived - own.null_time - own.shed
            streams.append({**kinds, "expired": 0} if static else kinds)
        return streams

    def _steering(self, decision: dict[str, Any] | None) -> Steering:
        live, manifest = self._live, self._manifest
        strategy = live.operator.strategy
        if isinstance(strategy, Learning):
            strategy.generator = np.random.default_rng((self._seed, self._host, manifest.sequence))
        return Steering(self._plan, manifest, strategy, live.adapter, decision)

    def _in_time(self, stream: int, table: pa.Table, watermark: int | None) -> tuple[pa.Table, int]:
        """The rows that are not later than the watermark, and how many are."""
        if watermark is None or self._plan.static[stream] or not table.num_rows:
            return table, 0
        timely = times_of(table, self._plan.spec.streams[stream]) >= watermark
        late = int(len(timely) - timely.sum())
        return (table.filter(pa.array(timely)), late) if late else (table, 0)
