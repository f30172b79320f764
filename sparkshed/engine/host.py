"""A host of a streaming join between micro-batches: in memory where it can be, and in the state for sure.

A worker may be used for the next micro-batch of a host, or another one, or one that was just started. The
operator with its windows stays in memory under the token of the state that it belongs to. If the state has
another token, the windows are brought up to date where theirs is one of its former ones, and start anew
otherwise. So a worker never joins with rows of a batch that failed. What is not in memory is read when rows
of a batch may probe it, see :mod:`sparkshed.engine.lazy`.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.holding import Holder
from sparkshed.engine.keeping import Keeper, Manifest, Pieces, Store
from sparkshed.planner.adaptation import Adapter
from sparkshed.planner.streaming import NO_LIMIT, Clock, Report, StreamingPlan

#: Hosts of other queries that one worker keeps in memory.
_MOST_CACHED = 16

Operator = TypeVar("Operator", bound=Holder)


@dataclass(slots=True)
class Live(Generic[Operator]):
    """A host in memory, as it was after the micro-batch with the token."""

    token: str
    operator: Operator
    adapter: Adapter | None = None
    pieces: Pieces = field(default_factory=dict)


_cache: OrderedDict[tuple[str, int], Live[Any]] = OrderedDict()


class Host(ABC, Generic[Operator]):
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

    def _revive(self) -> Live[Operator]:
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

    @abstractmethod
    def _anew(self) -> Live[Operator]:
        """The host with empty windows."""

    def _expire(self, watermark: int | None) -> int | None:
        """Drop what is out of reach; returns the watermark of the join."""
        operator, manifest = self._live.operator, self._manifest
        former, manifest.watermark = manifest.watermark, watermark
        own = self._plan.watermark(former, watermark)
        if own is not None:
            manifest.expired = own
            operator.expire(own)
            self._keeper.follow(operator, len(self._plan.spec.streams))
        return own

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
        hosts = self._plan.hosts
        places = hosts.count * max(hosts.lanes, self._plan.operators - 1)
        while len(_cache) > places + _MOST_CACHED:
            _cache.popitem(last=False)


def refuse_others(found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Refuse what was written by a plan with other marks.

    Raises:
        CheckpointError: Some differ; it names them.
    """
    # Checkpoints of earlier versions had no limit.
    changed = [word for word, mark in expected.items() if found.get(word, NO_LIMIT) != mark]
    former = _routing(found)
    if len(changed) > 1 and "hosts" in changed and former == _routing(expected):
        # They are as many, and differ in lengths that follow from what else has changed.
        changed.remove("hosts")
    if changed:
        raise CheckpointError(changed, former)


def _routing(marks: Mapping[str, str]) -> str:
    return marks.get("hosts", "").split(" ")[0]
