"""From the options of a plan to a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sparkshed.engine.eviction.age import Age
from sparkshed.engine.eviction.buffer import Buffer
from sparkshed.engine.eviction.classes import is_equality
from sparkshed.engine.eviction.gdj import Gdj
from sparkshed.engine.eviction.keys import Keys, links_of
from sparkshed.engine.eviction.learned import Learned
from sparkshed.engine.eviction.policy import Policy
from sparkshed.engine.eviction.prob import CountMin, Exactly, Prob
from sparkshed.engine.eviction.promised import Promised
from sparkshed.engine.eviction.simple import Fifo, Lfu, Lru, Rand
from sparkshed.engine.store import RowStore
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.physical import JoinSpec


def buffer_of(
    buffering: Buffering,
    spec: JoinSpec,
    stores: Sequence[RowStore],
    seed: tuple[int, ...],
    *,
    harvests: bool,
) -> Buffer:
    """The buffer of a plan, for a strategy that probes everything or the best slices only."""
    return Buffer(
        policy_of(buffering, spec, stores, (*seed, 1), harvests=harvests),
        buffering.limit,
        spec.retentions,
        unified=buffering.unified,
        reserve=buffering.reserve,
        seed=seed,
    )


def policy_of(
    buffering: Buffering,
    spec: JoinSpec,
    stores: Sequence[RowStore],
    seed: tuple[int, ...],
    *,
    harvests: bool,
) -> Policy:
    """The policy of a plan."""
    if buffering.policy == "gdj":
        groups = 1 if buffering.unified else len(stores)
        if buffering.percentile is not None:
            return Gdj(buffering.method, buffering.percentile, groups, own=buffering.own)
        aged = harvests and buffering.harvest
        kind = Promised if is_equality(spec) else Learned
        return kind(spec, stores, buffering.room, aged=aged)
    if buffering.policy == "prob":
        counts = Exactly if buffering.sketch is None else partial(CountMin, buffering.sketch)
        return Prob(Keys(links_of(spec), stores), counts)
    if buffering.policy == "age":
        return Age(spec.retentions)
    if buffering.policy == "rand":
        return Rand(seed)
    return {"fifo": Fifo, "lru": Lru, "lfu": Lfu}[buffering.policy]()
