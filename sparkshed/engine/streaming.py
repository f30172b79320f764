"""One host of a streaming join: a micro-batch in, results and a report out, and nothing forgotten.

A worker may be used for the next micro-batch of a host, or another one, or one that was just started. The
operator with its windows stays in memory under the token of the state that it belongs to. If the state has
another token, the windows are brought up to date where theirs is one of its former ones, and restored from
scratch otherwise. So a worker never joins with rows of a batch that failed.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.group import derived, portions, strategy_of, times_of
from sparkshed.engine.keeping import Keeper, Manifest, Pieces, Store
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.pacing import ENOUGH, Progress, efforts_of
from sparkshed.engine.strategies.learning import Learning
from sparkshed.planner.adaptation import Adapter
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.streaming import Clock, Decision, Report, StreamingPlan
from sparkshed.planner.wire import configuration_from_json, configuration_to_json

#: Portions of a batch, by how sure it is what it will take.
_MOST_STEPS, _STEPS, _FEWER_STEPS = 64, 16, 4
#: A batch that is expected to take less than this share of its limit need not be watched.
_LIGHT = 0.25
#: Hosts that one worker keeps in memory.
_MOST_CACHED = 16


@dataclass(slots=True)
class _Live:
    """A host in memory, as it was after the micro-batch with the token."""

    token: str
    operator: JoinOperator
    adapter: Adapter | None
    pieces: Pieces = field(default_factory=dict)
    thinned: list[list[int]] = field(default_factory=list)


_cache: OrderedDict[tuple[str, int], _Live] = OrderedDict()


class StreamingJoin:
    """One micro-batch of one host."""

    def __init__(self, plan: StreamingPlan, name: str, host: int, store: Store, clock: Clock) -> None:
        """Find the host in memory, or restore it.

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
        _refuse_others(manifest.marks, plan.marks)
        self._keeper = Keeper(store, manifest)
        if manifest.seed is None and plan.shedding is not None:
            # Kept, so that a batch that is repeated after a restart is shed alike.
            manifest.seed = plan.shedding.seed
        self._seed = manifest.seed or 0
        self._live = self._revive()
        self._alone, self._is_told = self._manifest.decision is None, False
        self._untaught: Tally | None = None
        self.report: Report | None = None

    @property
    def _manifest(self) -> Manifest:
        return self._keeper.manifest

    def _revive(self) -> _Live:
        live, manifest = _cache.pop(self._key, None), self._manifest
        if live is None:
            return self._restored()
        if live.token == manifest.token:
            return live
        # Another worker did the last batches. A token that is none of theirs is of a batch that failed.
        known = live.token in manifest.former
        if known and self._keeper.catch_up(live.operator, live.pieces, live.thinned):
            return live
        return self._restored()

    def _restored(self) -> _Live:
        plan, shedding = self._plan, self._plan.shedding
        strategy = None
        seed = (0, self._host)
        if shedding is not None:
            seed = (self._seed, self._host)
            strategy = strategy_of(shedding, shedding.configuration, seed)
        operator = JoinOperator(plan.spec, strategy, derived(seed))
        self._keeper.restore(operator)
        adapter = None
        if shedding is not None and (plan.follows or shedding.budget < 1):
            adapter = shedding.adapter(plan.spec)
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
        configuration = self._configure(decision)
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
        completeness, tally, entered = Completeness(), None, [(0, 0)] * len(late)
        counts, told = _counts(rows, len(late)), configuration.throttle
        progress = Progress(counts, self._limit(sum(counts)), manifest.effort, filling=manifest.sequence == 0)
        for portion in self._portions(rows, progress, told):
            before_it = efforts_of(operator.statistics)
            yield from operator.process(portion)
            completeness += operator.completeness
            entered = _grown(entered, operator.newest)
            taught = operator.strategy.take()
            tally = _sum(tally, taught)
            efforts = [
                now - then for now, then in zip(efforts_of(operator.statistics), before_it, strict=True)
            ]
            progress.add(_counts(portion, len(late)), efforts, configuration.throttle)
            configuration = self._plan_alone(taught, progress, told) or configuration
        manifest.effort = progress.per_row or manifest.effort
        self._keeper.add(operator, entered)
        self._learn_rest()
        self._commit()
        counted = operator.statistics.since(before)
        streams = []
        for own, lost in zip(counted.streams, late, strict=True):
            streams.append({**asdict(own), "arrived": own.arrived + lost, "late": lost})
            streams[-1]["joined"] = own.arrived - own.null_time - own.shed
        last = manifest.decision or {"version": 0, "figures": {}}
        self.report = Report(
            host=self._host,
            version=last["version"],
            throttle=progress.share if self._alone else told,
            streams=streams,
            work=[direction.work for direction in counted.directions],
            effort=sum(efforts_of(counted)),
            completeness=completeness,
            tally=tally or operator.strategy.take(),
            rows=operator.window_rows,
            state_bytes=manifest.size,
            reads=self._keeper.reads,
            read_bytes=self._keeper.read_bytes,
            seconds=self._clock() - self._started,
            figures=last["figures"],
        )

    def _own_watermark(self, watermark: int | None) -> int | None:
        """The watermark of the join, from Spark's."""
        if not self._plan.expires:
            return None
        former, self._manifest.watermark = self._manifest.watermark, watermark
        if self._plan.waits:
            # Rows that waited for this watermark are as old as that; those of the last one are late.
            return former
        return None if watermark is None else watermark + self._plan.regain

    def _configure(self, decision: dict[str, Any] | None) -> Configuration:
        """Follow the newest decision; before there is one, what the host planned for itself."""
        strategy, manifest = self._live.operator.strategy, self._manifest
        if decision is not None:
            manifest.decision = decision
            self._alone, self._is_told = False, True
        if manifest.decision is not None:
            strategy.configure(Decision.from_json(manifest.decision).configuration)
        elif manifest.own is not None:
            strategy.configure(configuration_from_json(manifest.own))
        if isinstance(strategy, Learning):
            strategy.generator = np.random.default_rng((self._seed, self._host, manifest.sequence))
        return strategy.configuration

    def _in_time(self, stream: int, table: pa.Table, watermark: int | None) -> tuple[pa.Table, int]:
        """The rows that are not later than the watermark, and how many are."""
        if watermark is None or self._plan.static[stream] or not table.num_rows:
            return table, 0
        timely = times_of(table, self._plan.spec.streams[stream]) >= watermark
        late = int(len(timely) - timely.sum())
        return (table.filter(pa.array(timely)), late) if late else (table, 0)

    def _limit(self, rows: int) -> float:
        """Effort that so many rows may take."""
        if not self._plan.follows:
            return inf
        decision = self._manifest.decision
        if decision is None:
            return ENOUGH
        most = Decision.from_json(decision).most
        return inf if most is None else most * rows

    def _portions(
        self, rows: Mapping[int, pa.Table], progress: Progress, throttle: float
    ) -> Iterator[Mapping[int, pa.Table]]:
        """The whole batch; where the host may plan for itself, portion by portion in the order of time."""
        if self._live.adapter is None:
            return iter([rows])
        alone, expected = self._manifest.decision is None, progress.expected(throttle)
        if not self._plan.follows:
            steps = _STEPS if alone else 1
        elif expected is None or expected > 1 or (alone and self._manifest.own is not None):
            # As long as nobody knows what rows cost, or where it is too much, portions are small.
            steps = _MOST_STEPS
        elif self._is_told:
            steps = _STEPS
        else:
            steps = 1 if expected <= _LIGHT else _FEWER_STEPS
        return portions(self._plan.spec, rows, steps)

    def _plan_alone(self, taught: Tally, progress: Progress, told: float) -> Configuration | None:
        """The host adapts by what it learned itself while no decision came, or where that is not enough.

        Where z follows the load, nothing is shed before the first decision, and nothing but what it says
        later, unless the batch would take so long that it is better not to wait for its end.

        Args:
            taught: What the last portion taught.
            progress: How far the batch is.
            told: z at the start of the batch.
        """
        live, shedding, manifest = self._live, self._plan.shedding, self._manifest
        if live.adapter is None or shedding is None:
            return None
        self._untaught = _sum(self._untaught, taught.copy())
        if not any(direction.rows for direction in self._untaught.directions):
            return None
        if not self._plan.follows:
            if manifest.decision is not None:
                return None
            budget = shedding.budget
        else:
            now = live.operator.strategy.configuration.throttle
            budget = min(progress.budget(now), 1.0 if manifest.decision is None else told)
            planning = self._alone and (manifest.decision is not None or manifest.own is not None)
            enough = progress.is_close(now, budget) if planning else not progress.is_too_much(now)
            if progress.is_over or enough:
                return None
        live.adapter.follow(live.operator.strategy.configuration)
        configuration = live.adapter.adapt(self._untaught, budget, rows=progress.to_come)
        self._alone, self._untaught = True, None
        if manifest.decision is None:
            manifest.own = configuration_to_json(configuration)
        live.operator.strategy.configure(configuration)
        return configuration

    def _learn_rest(self) -> None:
        """What was not needed for a plan may be needed for the next one."""
        adapter, taught = self._live.adapter, self._untaught
        if adapter is not None and taught is not None and self._plan.follows:
            adapter.learn(taught)
            self._untaught = None

    def _commit(self) -> None:
        """Write the manifest under a new token, and keep the host in memory under it."""
        manifest, live = self._manifest, self._live
        manifest.renew(secrets.token_hex(8))
        self._keeper.store.save(manifest.to_bytes())
        live.token, live.pieces, live.thinned = manifest.token, dict(manifest.pieces), manifest.thinned
        _cache[self._key] = live
        while len(_cache) > _MOST_CACHED:
            _cache.popitem(last=False)


def _refuse_others(found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    changed = [word for word, mark in expected.items() if found.get(word) != mark]
    if changed:
        raise CheckpointError(changed, found.get("hosts", "").split(" ")[0])


def _counts(rows: Mapping[int, pa.Table], streams: int) -> list[int]:
    return [rows[stream].num_rows if stream in rows else 0 for stream in range(streams)]


def _grown(ranges: Sequence[tuple[int, int]], more: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of rows with those that came after them."""
    return [
        (start if start < stop else first, last if first < last else stop)
        for (start, stop), (first, last) in zip(ranges, more, strict=True)
    ]


def _sum(total: Tally | None, more: Tally) -> Tally:
    if total is None:
        return more
    total.add(more)
    return total
