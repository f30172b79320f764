"""One host of a streaming join: a micro-batch in, results and a report out, and nothing forgotten.

A worker may be used for the next micro-batch of a host, or another one, or one that was just started. The
operator with its windows stays in memory under the token of the state that it belongs to. If the state has
another token, the windows are brought up to date where theirs is one of its former ones, and start anew
otherwise. So a worker never joins with rows of a batch that failed. What is not in memory is read when rows
of a batch may probe it, see :mod:`sparkshed.engine.lazy`.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from operator import sub
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.group import derived, strategy_of, together
from sparkshed.engine.keeping import Keeper, Manifest, Pieces, Store
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.pacing import efforts_of
from sparkshed.engine.statistics import Statistics
from sparkshed.engine.steering import Steering
from sparkshed.engine.strategies.evicting import drop_of, limit_of
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.timing import times_of
from sparkshed.planner.adaptation import Adapter
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.streaming import NO_LIMIT, Clock, Report, StreamingPlan

#: Hosts that one worker keeps in memory.
_MOST_CACHED = 16


@dataclass(slots=True)
class _Live:
    """A host in memory, as it was after the micro-batch with the token."""

    token: str
    operator: JoinOperator
    adapter: Adapter | None
    pieces: Pieces = field(default_factory=dict)


_cache: OrderedDict[tuple[str, int], _Live] = OrderedDict()


class StreamingJoin:
    """One micro-batch of one host."""

    def __init__(self, plan: StreamingPlan, name: str, host: int, store: Store, clock: Clock) -> None:
        """Find the host in memory, or set it up from what was written down.

        Args:
            plan: The plan.
            name: Of the query, so that hosts of several queries are told apart.
            host: Number of the host.
            store: Where its windows are written down.
            clock: Seconds, to tell how long the join took.

        Raises:
            CheckpointError: The state was written by another plan.
        """
        self._plan = plan
        self._host = host
        self._clock = clock
        self._key = (name, host)
        self._started = clock()
        known = store.load()
        manifest = Manifest(plan.marks) if known is None else Manifest.from_bytes(known)
        refuse_others(manifest.marks, plan.marks)
        self._keeper = Keeper(store, manifest, clock)
        if manifest.seed is None and plan.shedding is not None:
            # Kept, so that a batch that is repeated after a restart is shed alike.
            manifest.seed = plan.shedding.seed
        self._seed = manifest.seed or 0
        self._live = self._revive()
        self.report: Report | None = None

    @property
    def _manifest(self) -> Manifest:
        return self._keeper.manifest

    def _revive(self) -> _Live:
        live, manifest = _cache.pop(self._key, None), self._manifest
        # A token that is none of the last ones is of a batch that failed.
        # Notes are of one moment, and cannot be brought up to date.
        former = () if manifest.notes is not None else manifest.former
        if live is None or live.token not in (*former, manifest.token):
            live = self._anew()
        live.operator.reader = self._keeper.fetch
        if live.token != manifest.token:
            self._keeper.catch_up(live.operator, live.pieces)
            self._keeper.recall(live.operator)
        return live

    def _anew(self) -> _Live:
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
        return _Live("", operator, adapter)

    def process(
        self, batch: Mapping[int, Sequence[pa.Table]], decision: dict[str, Any] | None, watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Join a micro-batch; when all results were read, the state is written and `report` is there.

        Args:
            batch: Rows by stream, in any number of tables.
            decision: A new decision of the driver.
            watermark: Spark's watermark in microseconds; None before there is one.
        """
        operator, manifest = self._live.operator, self._manifest
        before = deepcopy(operator.statistics)
        steering = self._steering(decision)
        late = [0] * len(self._plan.spec.streams)
        watermark = self._own_watermark(watermark)
        if watermark is not None:
            manifest.expired = watermark
            operator.expire(watermark)
            self._keeper.follow(operator, len(late))
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

    def _own_watermark(self, watermark: int | None) -> int | None:
        """The watermark of the join, from Spark's."""
        former, self._manifest.watermark = self._manifest.watermark, watermark
        return self._plan.watermark(former, watermark)

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

    def _commit(self) -> None:
        """Write the manifest under a new token, and keep the host in memory under it."""
        manifest, live = self._manifest, self._live
        manifest.adapted = None if live.adapter is None else live.adapter.notes()
        if live.adapter is not None and manifest.adapted is not None:
            # Notes are rounded: who remembers goes on from the same numbers as who reads them.
            live.adapter.recall(manifest.adapted)
        manifest.renew(secrets.token_hex(8))
        self._keeper.store.save(manifest.to_bytes())
        live.token, live.pieces = manifest.token, dict(manifest.pieces)
        _cache[self._key] = live
        while len(_cache) > _MOST_CACHED:
            _cache.popitem(last=False)


def refuse_others(found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Refuse what was written by a plan with other marks.

    Raises:
        CheckpointError: Some differ; it names them.
    """
    # Checkpoints of earlier versions had no limit.
    changed = [word for word, mark in expected.items() if found.get(word, NO_LIMIT) != mark]
    if changed:
        raise CheckpointError(changed, found.get("hosts", "").split(" ")[0])
