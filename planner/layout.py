"""Choose the groups: hash buckets, time segments, or both.

The number of groups follows from the rows and the expected work; how they are cut follows from what
the slowest group would have to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkshed.planner.cost import plan_direction, work
from sparkshed.planner.keys import common_keys
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import HopEstimate, Layout, Loads

#: A group of fewer rows is not worth a task of its own.
MIN_GROUP_ROWS = 2_000
#: More rows, or more work, than this are split further, so that a worker's memory and time stay bounded.
MAX_GROUP_ROWS = 250_000
MAX_GROUP_WORK = 100_000_000
MAX_GROUPS = 4_096


@dataclass(frozen=True, slots=True)
class Resources:
    """What Spark offers: tasks that run at the same time."""

    cores: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A layout, how many times over rows are sent in it, and what others would have been like."""

    layout: Layout
    replication: float = 1.0
    loads: Loads = ()


def choose_layout(plan: ShedJoin, resources: Resources) -> Choice:
    """The layout in which the slowest group has least to do."""
    routing, hosts = plan.hint.diffusion.routing, plan.hint.diffusion.hosts
    limited = plan.hint.memory is not None and routing != "hash"
    if routing == "none" or plan.hint.rows is not None or limited:
        # Groups would have to divide the memory, so that is done only where it is asked for.
        return Choice(Layout(_master(plan)))
    groups = hosts or _group_count(plan, resources)
    best: tuple[float, Layout, float] | None = None
    loads: dict[str, float] = {}
    for layout in _layouts(plan, routing, groups):
        load, replication = _load(plan, layout)
        loads[layout.routing] = min(load, loads.get(layout.routing, load))
        if best is None or load < best[0] * 0.999:
            best = (load, layout, replication)
    assert best is not None
    return Choice(best[1], best[2], tuple(loads.items()) if routing == "auto" and groups > 1 else ())


def _layouts(plan: ShedJoin, routing: str, groups: int) -> Iterator[Layout]:
    """All that come into question."""
    if routing == "auto" and groups > 1:
        yield Layout(_master(plan))
    if routing != "ctr":
        keys = common_keys(plan)
        for buckets in _bucket_counts(groups, routing, has_key=keys is not None):
            for master in range(len(plan.names)):
                segments = 1 if routing == "hash" else -(-groups // buckets)
                cuts = _cuts(plan, master, segments)
                yield Layout(master, buckets, cuts, keys if buckets > 1 else None)
    if routing == "ctr" or (routing == "auto" and plan.hint.strategy == "exact" and groups > 1):
        master = _master(plan)
        yield Layout(master, cuts=_cuts(plan, master, groups), relayed=True)


def _hops(plan: ShedJoin, layout: Layout) -> Iterator[tuple[HopEstimate, float]]:
    """Each hop of the master, and the groups that a partial result goes to for it."""
    _, estimates = plan_direction(plan, layout.master)
    length = _spread(plan) / layout.segments
    for target, estimate in zip(plan.orders[layout.master], estimates, strict=True):
        yield estimate, _copies(plan, layout, target, length)


def _group_count(plan: ShedJoin, resources: Resources) -> int:
    rows = plan.statistics.rows
    if rows < MIN_GROUP_ROWS:
        return 1
    units = min(work(plan, origin) for origin in range(len(plan.names)))
    wanted = max(rows / MAX_GROUP_ROWS, units / MAX_GROUP_WORK, 1)
    waves = -(-int(wanted) // resources.cores)
    return min(MAX_GROUPS, max(1, waves) * resources.cores)


def _bucket_counts(groups: int, routing: str, *, has_key: bool) -> list[int]:
    if not has_key or routing == "atr":
        return [1]
    if routing == "hash":
        return [groups]
    return [b for b in range(1, groups + 1) if groups % b == 0]


def _master(plan: ShedJoin) -> int:
    return min(range(len(plan.names)), key=lambda origin: (work(plan, origin), origin))


def _cuts(plan: ShedJoin, master: int, segments: int) -> tuple[int, ...]:
    """Segment ends at evenly spaced quantiles of the master's times."""
    quantiles = plan.statistics.streams[master].quantiles
    if segments <= 1 or len(quantiles) < 2:
        return ()
    steps = len(quantiles) - 1
    cuts = set()
    for number in range(1, segments):
        place = number * steps / segments
        low = int(place)
        high = min(low + 1, steps)
        cut = quantiles[low] + round((quantiles[high] - quantiles[low]) * (place - low))
        if quantiles[0] < cut <= quantiles[-1]:
            cuts.add(cut)
    return tuple(sorted(cuts))


def _load(plan: ShedJoin, layout: Layout) -> tuple[float, float]:
    """Expected work of the slowest group (rows received plus units), and the replication."""
    if layout.relayed:
        return _relayed_load(plan, layout)
    top = max(s.top_share for s in plan.statistics.streams) if layout.buckets > 1 else 0.0
    share = max(top, 1 / layout.buckets) / layout.segments
    sent = 0.0
    length = _spread(plan) / layout.segments
    for number, stream in enumerate(plan.statistics.streams):
        copied = number != layout.master and layout.segments > 1
        sent += stream.rows * (_copies(plan, layout, number, length) if copied else 1.0)
    replication = sent / plan.statistics.rows if plan.statistics.rows else 1.0
    received = sent * share
    return received * ROW_COST + work(plan, layout.master) * share, replication


def _relayed_load(plan: ShedJoin, layout: Layout) -> tuple[float, float]:
    """The same where partial results travel; each hop is a shuffle of its own."""
    rows, hops = plan.statistics.rows, list(_hops(plan, layout))
    sent = float(rows) - plan.statistics.streams[layout.master].rows
    sent += sum(estimate.probes * copies for estimate, copies in hops)
    share = 1 / layout.segments
    load = sent * share * ROW_COST + work(plan, layout.master) * share + (len(hops) - 1) * SHUFFLE_COST
    return load, sent / rows if rows else 1.0


def _spread(plan: ShedJoin) -> int:
    streams = plan.statistics.streams
    return max(0, max(s.last for s in streams) - min(s.first for s in streams))


def _copies(plan: ShedJoin, layout: Layout, stream: int, length: float) -> float:
    """Segments that have rows of one of two streams, the master and another, for a row of the other one."""
    before, after = plan.closed.at[stream][layout.master], plan.closed.at[layout.master][stream]
    if before is None or after is None or length == 0:
        return float(layout.segments)
    return min(float(layout.segments), 1 + max(0, before + after) / length)


#: Receiving, decoding and indexing a row, in work units.
ROW_COST = 30.0
#: One more shuffle, whatever is in it.
SHUFFLE_COST = 3e6
