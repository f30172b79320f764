"""Choose the hosts of a streaming join: by key, by segments of a master, or with partial results that travel.

Nothing is known of the rows yet, so what hosts would have to do follows from usual rates and selectivities,
and from the windows, which are known.
"""

from __future__ import annotations

from itertools import islice

from sparkshed.planner.cost import plan_direction, work
from sparkshed.planner.diffusion.coordinated import spread_of
from sparkshed.planner.diffusion.overhead import Flow, aligned, coordinated, reach_of
from sparkshed.planner.diffusion.plan import aligned_plan, coordinated_plan
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.keys import common_keys
from sparkshed.planner.layout import ROW_COST, Resources
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import Loads
from sparkshed.planner.streaming import Hosts
from sparkshed.sql.errors import PlanError, listing

#: Segments of the master stream in one basic window: short ones keep all hosts busy in every micro-batch.
SEGMENTS = 20
#: Orders of a stream that are looked at for each of its segments.
MOST_ORDERS = 3
#: What a row costs on its way through a router, as a share of what it costs to receive it on a host.
_ROUTED = 0.2
#: The same for a copy of it: blobs of many rows.
_COPIED = 0.05
#: Loads that differ by less than this factor are alike, since little is known of the streams.
_ABOUT = 1.1
#: Seconds that stand for a window without an end.
_FOR_EVER = 1e9
_SECOND = 1_000_000


def choose_hosts(plan: ShedJoin, static: tuple[bool, ...], resources: Resources) -> tuple[Hosts, Loads]:
    """As many hosts as there are cores, and the routing with the least to do for the busiest of them."""
    routing, count = plan.hint.diffusion.routing, plan.hint.diffusion.hosts or resources.cores
    keys = None if routing in ("atr", "ctr", "none") else common_keys(plan)
    # Copies of rows would have to share the memory.
    limited = plan.hint.memory is not None
    assert plan.basic is not None
    master = next(number for number, own in enumerate(static) if not own)
    if routing == "ctr" and any(static):
        tables = [name for name, own in zip(plan.names, static, strict=True) if own]
        msg = (
            f"SHED option `diffuse=ctr` is for streams, and {listing(tables)} is a table: its rows would "
            "have to be on every host. Use `atr` or `auto`."
        )
        raise PlanError(msg)
    segment = max(1, plan.basic // SEGMENTS)
    if count == 1 or routing == "none" or plan.hint.rows is not None or (limited and keys is None):
        return Hosts(1, None, master, segment), ()
    found = {
        "hash": Hosts(count, keys, master, segment),
        "dealt": Hosts(count, None, master, segment),
        "atr": Hosts(count, None, master, router=aligned_plan(plan.closed.at, plan.basic, count)),
        "ctr": Hosts(count, None, master, router=coordinated_plan(plan.basic, orders_of(plan))),
    }
    if routing != "auto" or limited:
        return found["hash" if limited else routing], ()
    found["none"] = Hosts(1, None, master, segment)
    loads = _loads(plan, found, relayed=plan.hint.strategy == "exact" and not any(static))
    best = min(loads.values())
    # The simplest comes first.
    return found[next(own for own in loads if loads[own] <= _ABOUT * best)], tuple(loads.items())


def _loads(plan: ShedJoin, found: dict[str, Hosts], *, relayed: bool) -> dict[str, float]:
    """Units of work in a second on the busiest host."""
    flow, count = flow_of(plan), found["dealt"].count
    master = found["dealt"].master
    rows = sum(flow.rates)
    # From any direction as much is found; rows that are there already meet those that come.
    spread = plan.statistics.streams[0].rows / flow.rates[0]
    join = min(work(plan, origin) for origin, _ in enumerate(plan.names)) / spread / count
    loads = {"none": rows * ROW_COST + join * count}
    if found["hash"].keys is not None:
        top = max(own.top_share for own in plan.statistics.streams)
        loads["hash"] = max(1.0, top * count) * (rows / count * ROW_COST + join)
    loads["dealt"] = (flow.rates[master] / count + rows - flow.rates[master]) * ROW_COST + join
    router = found["atr"].router
    assert router is not None
    copies = aligned(flow, master, router.length * router.tick / _SECOND, count)
    loads["atr"] = (rows + copies) / count * ROW_COST + join + _routed(rows, copies)
    if relayed:
        stages = len(plan.names) - 1
        sent = coordinated(flow, plan.orders, float(spread_of(count)), 1.0)
        loads["ctr"] = (rows + sent) * stages / count * ROW_COST + join + _routed(rows, sent)
    return loads


def _routed(rows: float, copies: float) -> float:
    """What a router has to do, alone, before the hosts."""
    return (rows * _ROUTED + (rows + copies) * _COPIED) * ROW_COST


def flow_of(plan: ShedJoin) -> Flow:
    """The streams as routing sees them."""
    streams, known = range(len(plan.names)), plan.statistics
    matches = [[1.0 for _ in streams] for _ in streams]
    for origin in streams:
        _, estimates = plan_direction(plan, origin)
        for target, hop in zip(plan.orders[origin], estimates, strict=True):
            matches[origin][target] = hop.selectivity
    rates = tuple(own.rate or 1.0 for own in known.streams)
    return Flow(
        rates,
        tuple(tuple(min(seconds, _FOR_EVER) for seconds in own) for own in reach_of(plan.closed.at)),
        tuple(map(tuple, matches)),
    )


def orders_of(plan: ShedJoin) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The orders that rows of each stream may be joined in, the best first; each takes time to look at."""
    graph = JoinGraph(len(plan.names), plan.linking)
    found = []
    for origin, best in enumerate(plan.orders):
        others = (order for order in graph.orders(origin) if order != best)
        found.append((best, *islice(others, MOST_ORDERS - 1)))
    return tuple(found)
