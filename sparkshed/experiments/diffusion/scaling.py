"""A thousand hosts and a million rows per second, on paper: what routing sends, and where it stops to scale.

Nothing runs here but the router of CTR, which tells how many of so many hosts cover a window. The rest is
computed from the overhead formulas and the cost of a row that was measured in streaming queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt

import numpy as np

from sparkshed.experiments.diffusion.aligned import flow_of, ticks_of
from sparkshed.experiments.diffusion.cluster import Query
from sparkshed.experiments.diffusion.coordinated import orders_of
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter
from sparkshed.planner.diffusion.overhead import aligned, best_master, coordinated

#: Rows of all streams in a second, seconds of all windows, partners of a row in each window.
RATE, WINDOW, MATCHES = 1e6, 10.0, 1.0
#: A host: cores, gigabytes, gigabits per second, and how much of them may be used.
CORES, MEMORY, NETWORK, USED = 16, 64.0, 10.0, 0.7
#: Seconds of a core for a row or partial result that a host gets: 143,200 rows per second on two cores.
ROW = 2 / 143_200
#: Seconds of a core that joining a row takes in all: half a million comparisons of 20 ns, say.
JOIN = 10e-3
#: Bytes of a row on the network and in a window; narrow rows were measured to have 12 to 18 on the network.
WIRE, HELD = 100, 150
#: Seconds of a core for a copy that a router sends; to a local socket 0.006 to 0.17 µs were measured.
SEND = 1e-6
#: Segments of a window in CTR.
SEGMENTS = 100
_MOST = 4000


@dataclass(frozen=True, slots=True)
class Plan:
    """What a group of hosts gets and sends.

    Attributes:
        rows: Rows that come in a second.
        sent: Copies of rows in a second.
        partials: Partial results that travel in a second.
        held: Rows that a host holds.
        table: Entries of the routing table.
        decisions: Of a router in a second.
        used: The share of hosts that have something to do in one window.
    """

    rows: float
    sent: float
    partials: float
    held: float
    table: int
    decisions: float
    used: float = 1.0

    def cores(self, hosts: int) -> float:
        """Cores that are busy on each host that is used."""
        return (self.rows * JOIN + (self.sent + self.partials) * ROW) / (hosts * self.used)

    def fits(self, hosts: int) -> bool:
        """Whether hosts have the CPU, network and memory."""
        megabits = 8e-6 * (self.sent + self.partials) * WIRE / hosts
        memory = 1e-9 * HELD * self.held
        return (
            self.cores(hosts) <= USED * CORES and megabits <= 1e3 * USED * NETWORK and memory <= USED * MEMORY
        )


def query_of(streams: int, rate: float) -> Query:
    """Streams that are all the same, in which a row has so many partners in each window."""
    each = rate / streams
    return Query(streams, SEGMENTS, MATCHES / (each * WINDOW), (each,) * streams, WINDOW / SEGMENTS)


def by_aligned(streams: int, rate: float, hosts: int) -> Plan:
    """ATR with the longest segments that keep all hosts busy: each has one in a window."""
    query, length = query_of(streams, rate), WINDOW / hosts
    flow = flow_of(query, query.rates, 2 * WINDOW)
    copies = aligned(flow, best_master(flow, length, hosts), length, hosts)
    # A window of each slave is everywhere, and that of the master once.
    held = WINDOW * rate / streams * (streams - 1 + 1 / hosts)
    return Plan(rate, rate + copies, 0.0, held, 3 * hosts, 1 / length)


def by_coordinated(streams: int, rate: float, hosts: int) -> Plan:
    """CTR with the covers that its router finds.

    Partial results go to all hosts of the next hop but their own, which is more than the paper counts.
    """
    query = query_of(streams, rate)
    flow = flow_of(query, query.rates, WINDOW)
    keepers, fan, used = covers(streams, hosts)
    orders = [own[0] for own in orders_of(query, 1)]
    copies = coordinated(flow, orders, keepers, 0.0)
    partials = coordinated(flow, orders, 1.0, fan)
    held = WINDOW * rate * keepers / hosts
    return Plan(rate, rate + copies, partials, held, streams * SEGMENTS, streams * SEGMENTS / WINDOW, used)


def covers(streams: int, hosts: int) -> tuple[float, float, float]:
    """Hosts that keep a row, other hosts that a partial result goes to, and the share of hosts that are used.

    Runs are made for some numbers of hosts; between them, covers grow with the root of the number.
    """
    least = max((own for own in (1, 10, 30, 100, 300, 1000) if own <= hosts), default=1)
    keepers, fan, used = _covers(streams, least)
    growth = sqrt(hosts / least)
    return min(hosts, keepers * growth), min(hosts - 1.0, fan * growth), used


@cache
def _covers(streams: int, hosts: int) -> tuple[float, float, float]:
    """What the real router comes to, with the loads that it makes."""
    query = query_of(streams, RATE)
    router = CoordinatedRouter(ticks_of(query), hosts, orders_of(query, 1))
    kept: list[float] = []
    fans: list[float] = []
    used: set[int] = set()
    work, probed = np.zeros(hosts), 0
    ticks = 3 * SEGMENTS
    for tick in range(ticks):
        router.forget(tick)
        paths = router.route([(stream, tick) for stream in range(streams)])
        for path in paths.values():
            for hop in path.hops:
                for host, runs in hop.answers.items():
                    answered = sum(last - first + 1 for first, last in runs)
                    work[host] += answered
                    probed += answered
                used |= hop.answers.keys() if tick >= ticks - SEGMENTS else set()
            if tick >= ticks / 2:
                kept.append(len(path.keepers))
                fans += [len(hop.hosts) - 1 for hop in path.hops[1:]]
        if tick % 5 == 4:
            router.measure([float(own) for own in work / max(1.0, work.sum())], probed)
            work[:], probed = 0, 0
    return float(np.mean(kept)), float(np.mean(fans)) if fans else 0.0, len(used) / hosts


_WAYS = {"atr": by_aligned, "ctr": by_coordinated}


def needed(way: str, streams: int, rate: float) -> int | None:
    """The fewest hosts that can do it; None if no number can."""
    plan, hosts = _WAYS[way], 1
    while hosts <= _MOST:
        if plan(streams, rate, hosts).fits(hosts):
            return hosts
        hosts += max(1, hosts // 50)
    return None


def scaling(settings: Settings) -> Result:
    """Two, three and five streams; all hosts in one group, and in groups that share rows by a hash first."""
    rows: list[Row] = []
    sizes = (10, 100, 1000) if not settings.quick else (10, 100)
    for streams in (2, 3) if settings.quick else (2, 3, 5):
        for way in _WAYS:
            for size in sizes:
                settings.progress(len(rows), 18, f"{streams} streams, {way}, groups of {size}")
                rows.append(_row(streams, way, size, 1000))
    by = {(row["streams"], row["way"], row["group"]): row for row in rows}
    for streams, way, size in by:
        if size > 10:
            grown = by[streams, way, size]["sent_M"] / by[streams, way, 10]["sent_M"]
            most = size / 10 if way == "atr" else 2 * sqrt(size / 10)
            require(grown <= 1.05 * most, f"{way}: copies grow faster than expected: {grown:.1f}")
    headline = {}
    for streams in (2, 3) if settings.quick else (2, 3, 5):
        for way in _WAYS:
            own = rows_per_second(way, streams)
            headline[f"{way}_{streams}_most_rows_M"] = round(own / 1e6, 2)
    params = {
        "join_ms": 1e3 * JOIN,
        "rate": RATE,
        "window": WINDOW,
        "matches": MATCHES,
        "cores": CORES,
        "memory_gb": MEMORY,
        "network_gbit": NETWORK,
        "used": USED,
        "row_us": round(1e6 * ROW, 2),
        "wire_bytes": WIRE,
        "held_bytes": HELD,
        "send_us": 1e6 * SEND,
    }
    return Result("diffusion-scaling", params, rows, headline)


def _row(streams: int, way: str, size: int, hosts: int) -> Row:
    """All hosts, in groups of a size; each group has its part of the rows."""
    groups = hosts // size
    plan = _WAYS[way](streams, RATE / groups, size)
    least = needed(way, streams, RATE / groups)
    return {
        "streams": streams,
        "way": way,
        "groups": groups,
        "group": size,
        "copies": round(plan.sent / (RATE / groups), 1),
        "sent_M": round(groups * plan.sent / 1e6, 1),
        "partials_M": round(groups * plan.partials / 1e6, 1),
        "table": plan.table,
        "decisions": round(plan.decisions),
        "cores": round(plan.cores(size), 2),
        "megabits": round(8e-6 * (plan.sent + plan.partials) * WIRE / size),
        "gigabytes": round(1e-9 * HELD * plan.held, 2),
        "needed": -1 if least is None else groups * least,
        "router_cores": ceil(groups * plan.sent * SEND),
        "used": round(plan.used, 2),
        "fits": plan.fits(size),
    }


def rows_per_second(way: str, streams: int, hosts: int = 1000) -> float:
    """The most rows per second that a single group of so many hosts can take."""
    low, high = 1e3, 1e10
    for _ in range(50):
        middle = sqrt(low * high)
        low, high = (middle, high) if _WAYS[way](streams, middle, hosts).fits(hosts) else (low, middle)
    return low
