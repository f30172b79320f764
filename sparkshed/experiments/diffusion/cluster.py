"""A cluster on a virtual clock: rows come, a way routes them, and hosts do what they can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Protocol

import numpy as np

from sparkshed.engine.arrays import Floats
from sparkshed.experiments.diffusion.hosts import Costs, Hosts
from sparkshed.experiments.diffusion.sheet import Ints, Sheet, Store
from sparkshed.planner.diffusion.loads import Usage

#: Rounds in which the shares that hosts have time for are found, starting from those of the interval before.
_ROUNDS = 20
#: The share of the CPU that taking rows in can have.
_INTAKE = 0.9
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Query:
    """A join of streams, with the same window and the same selectivity everywhere.

    Attributes:
        streams: How many.
        window: Ticks; all streams have the same.
        selectivity: How likely two rows match. All pairs of a result have to, so a partial result of j rows
            matches another row with this to the power of j.
        rates: Rows of each stream in a second.
        tick: Seconds of a tick.
    """

    streams: int
    window: int
    selectivity: float
    rates: tuple[float, ...]
    tick: float = 1.0

    @property
    def match(self) -> list[float]:
        """How likely a row matches the partial results of each hop."""
        return [self.selectivity ** (hop + 1) for hop in range(self.streams - 1)]

    @property
    def comparisons(self) -> float:
        """Rows that new rows and partial results are compared with in a second, if nothing is shed."""
        total = 0.0
        for stream, partials in enumerate(self.rates):
            for other, share in zip(self.others(stream), self.match, strict=True):
                compared = partials * self.rates[other] * self.window * self.tick
                total, partials = total + compared, compared * share
        return total

    def others(self, stream: int) -> list[int]:
        """All other streams, those with few rows first."""
        return sorted((k for k in range(self.streams) if k != stream), key=lambda k: (self.rates[k], k))


@dataclass(slots=True)
class Seen:
    """What an interval showed, as hosts report it.

    Attributes:
        loads: The combined load of each host: what was asked of it, as a share of what it has.
        rates: Rows of each stream in a second.
        share: Results that were delivered, of all.
        found: Partial results of each flow, hop by hop.
    """

    loads: list[float]
    rates: tuple[float, ...]
    share: float
    found: list[Floats]


class Way(Protocol):
    """A way to route rows."""

    @property
    def size(self) -> int:
        """Entries of the routing table."""

    def route(self, tick: int, rows: Sequence[float], store: Store, sheet: Sheet) -> None:
        """Send the rows of a tick; at the end of it, `store` has to be closed."""

    def adapt(self, ticks: int, seen: Seen) -> None:
        """Learn what an interval of so many ticks showed."""


@dataclass(slots=True)
class Report:
    """What a run did after its warm-up.

    Attributes:
        seconds: How long that was.
        results: Results.
        full: Those of the exact join.
        rows: Rows that came.
        copies: Rows that were sent to hosts.
        partials: Partial results that travelled.
        megabytes: Sent over the network, without results.
        work: Seconds of work of each host, of the seconds that it has.
        table: The most entries that the routing table had.
        lost: Copies of rows that the network or the CPU had no time to take.
        over: The most that a host worked in an interval, of what it can.
        delivered: Results of each interval, from the start.
    """

    seconds: float = 0.0
    results: float = 0.0
    full: float = 0.0
    rows: float = 0.0
    copies: float = 0.0
    partials: float = 0.0
    megabytes: float = 0.0
    work: Floats = field(default_factory=lambda: np.zeros(0))
    table: int = 0
    lost: float = 0.0
    over: float = 0.0
    delivered: list[float] = field(default_factory=list)

    @property
    def throughput(self) -> float:
        """Results per second."""
        return self.results / self.seconds

    @property
    def share(self) -> float:
        """Of the results of the exact join."""
        return self.results / self.full

    @property
    def network(self) -> float:
        """Megabits per second."""
        return 8 * self.megabytes / self.seconds

    @property
    def variation(self) -> float:
        """Standard deviation over mean of how busy hosts were."""
        return float(np.std(self.work) / np.mean(self.work))


@dataclass(slots=True)
class Done:
    """What hosts did in an interval.

    Attributes:
        results: Results.
        partials: Partial results that travelled.
        cpu: Seconds of work that each host did.
        asked: Those it would have needed for everything.
        megabytes: What should have come to it.
        found: Partial results of each flow, hop by hop.
    """

    results: float
    partials: float
    cpu: Floats
    asked: Floats
    megabytes: Floats
    found: list[Floats]


@dataclass(slots=True)
class Demand:
    """What everything would take: work and what comes from the network, by flow and host.

    Attributes:
        flows: The flow of each entry.
        hosts: Its host.
        cpu: Seconds of work there.
        megabytes: Of partial results that come there.
        found: Partial results of each flow, hop by hop.
        travelled: Partial results of each flow that travel.
        results: Results of each flow.
    """

    flows: Ints
    hosts: Ints
    cpu: Floats
    megabytes: Floats
    found: list[Floats]
    travelled: Floats
    results: Floats


class Cluster:
    """Hosts that do what they can.

    Rows come in, are kept, and then joined. Where a host has no time for all of it, it joins a share of the
    rows, chosen at random; the others are kept and can be found, but do not look for partners themselves. A
    row that travels is joined by all hosts on its way or by none: the smallest share of them counts, so no
    work is done in vain::

        host 1 has time for 0.8 ─┐
        host 2 has time for 0.5 ─┼─▶ 0.5 of the rows on a way over all three
        host 3 has time for 1.0 ─┘

    Rows that the network or the CPU cannot even take in are lost. Where rows need more memory than there is,
    a random share of them is kept. All ways to route are treated alike.
    """

    def __init__(self, hosts: Hosts, costs: Costs) -> None:
        """Start idle."""
        self.hosts = hosts
        self.costs = costs
        # Seconds of work that wait.
        self.waiting = np.zeros(len(hosts))
        # The share of rows that hosts take in, and that they have time to join.
        self.taken, self._joined = np.ones(len(hosts)), np.ones(len(hosts))

    def work(self, sheet: Sheet, held: Floats, seconds: float) -> Done:
        """Do the work of an interval; `held` are megabytes that should be in memory."""
        costs, hosts = self.costs, self.hosts
        have = hosts.cpu * (seconds + costs.queue) - self.waiting
        came = sheet.received * costs.wire
        self.taken = np.minimum(1.0, hosts.bandwidth * seconds / np.maximum(came, _LEAST))
        self.taken = np.minimum(
            self.taken, _INTAKE * hosts.cpu * seconds / np.maximum(sheet.received * costs.receive, _LEAST)
        )
        receiving = sheet.received * self.taken * costs.receive
        demand = self._demand(sheet, np.minimum(1.0, hosts.memory / np.maximum(held, _LEAST)))
        network = np.maximum(0.0, hosts.bandwidth * seconds - came * self.taken)
        joined = self._shares(demand, have - receiving, network)
        count = len(hosts)
        cpu = receiving + np.bincount(demand.hosts, demand.cpu * joined[demand.flows], minlength=count)
        asked = sheet.received * costs.receive + np.bincount(demand.hosts, demand.cpu, minlength=count)
        asked += self.waiting
        self.waiting = np.maximum(0.0, self.waiting + cpu - hosts.cpu * seconds)
        return Done(
            results=float(demand.results @ joined),
            partials=float(demand.travelled @ joined),
            cpu=cpu,
            asked=asked,
            megabytes=came + np.bincount(demand.hosts, demand.megabytes, minlength=count),
            found=[found * joined for found in demand.found],
        )

    def _shares(self, demand: Demand, have: Floats, network: Floats) -> Floats:
        """The share of each flow that is joined: as much as fits into all hosts on its way."""
        count, flows = len(self.hosts), len(demand.results)
        shares = self._joined
        for turn in range(_ROUNDS + 1):
            joined = _smallest(shares, demand, flows)
            used = np.bincount(demand.hosts, demand.cpu * joined[demand.flows], minlength=count)
            moved = np.bincount(demand.hosts, demand.megabytes * joined[demand.flows], minlength=count)
            fitting = np.minimum(have / np.maximum(used, _LEAST), network / np.maximum(moved, _LEAST))
            if turn < _ROUNDS:
                shares = np.clip(shares * np.clip(fitting, 0.5, 1.5) ** 0.7, 1e-4, 1.0)
        self._joined = shares
        # Work is in proportion to the shares, so this fits.
        joined *= _smallest(np.minimum(1.0, fitting), demand, flows)
        return joined

    def _demand(self, sheet: Sheet, room: Floats) -> Demand:
        """Let all rows flow."""
        costs, rows = self.costs, sheet.rows
        entries: list[tuple[Ints, Ints, Floats, Floats]] = []
        partials, found = rows, np.zeros(0)
        travelled, results, by_hop = np.zeros(len(rows)), np.zeros(len(rows)), []
        for number, hop in enumerate(sheet.hops()):
            offered = partials[hop.flows]
            if number == 0:
                entering, away = offered * self.taken[hop.hosts], np.zeros(len(offered))
            else:
                entering = offered
                away = np.maximum(0.0, offered - np.where(hop.own >= 0, found[hop.own], 0.0))
                travelled += np.bincount(hop.flows, away, minlength=len(rows))
            compared = entering * hop.candidates * room[hop.hosts]
            found = compared * hop.match
            work = compared * costs.comparison + found * hop.fan * costs.send + away * costs.receive
            entries.append((hop.flows, hop.hosts, work, away * costs.partial))
            partials = np.bincount(hop.flows, found, minlength=len(rows))
            by_hop.append(partials)
            results[hop.ending] += partials[hop.ending]
        if not entries:
            none = np.zeros(0, dtype=int)
            return Demand(none, none, np.zeros(0), np.zeros(0), by_hop, travelled, results)
        flows, places, cpu, megabytes = (np.concatenate(column) for column in zip(*entries, strict=True))
        return Demand(flows, places, cpu, megabytes, by_hop, travelled, results)


def _smallest(shares: Floats, demand: Demand, flows: int) -> Floats:
    """The smallest share of the hosts of each flow."""
    found = np.ones(flows)
    np.minimum.at(found, demand.flows, shares[demand.hosts])
    return found


def simulate(
    query: Query,
    arrivals: Floats,
    hosts: Hosts,
    way: Way,
    costs: Costs,
    *,
    interval: int = 5,
    warm_up: int = 100,
) -> Report:
    """Run a way over arrivals.

    Args:
        query: What is joined.
        arrivals: Rows of each stream in each tick.
        hosts: The cluster.
        way: How rows are routed.
        costs: What they cost.
        interval: Ticks after which loads are told.
        warm_up: Ticks that do not count.
    """
    ticks = arrivals.shape[1] // interval * interval
    store = Store(query.streams, ticks, len(hosts), query.window)
    cluster, report = Cluster(hosts, costs), Report(work=np.zeros(len(hosts)))
    full = _full(query, arrivals)
    for first in range(0, ticks, interval):
        sheet = Sheet(len(hosts))
        for tick in range(first, first + interval):
            rows = [float(count) for count in arrivals[:, tick]]
            way.route(tick, rows, store, sheet)
        last = first + interval - 1
        held = store.held(last) * costs.row
        seconds = interval * query.tick
        done = cluster.work(sheet, held + _beside(way, costs), seconds)
        expected = float(full[first : last + 1].sum())
        rates = tuple(float(rate) for rate in arrivals[:, first : last + 1].sum(axis=1) / seconds)
        loads = _loads(done, held, hosts, seconds)
        way.adapt(interval, Seen(loads, rates, done.results / expected if expected else 1.0, done.found))
        report.delivered.append(done.results)
        if first >= warm_up:
            _count(report, way, sheet, done, cluster, seconds)
            report.full += expected
            report.rows += float(arrivals[:, first : last + 1].sum())
    report.work /= report.seconds * hosts.cpu
    return report


def _beside(way: Way, costs: Costs) -> Floats | float:
    """Megabytes that a way keeps beside rows."""
    kept = getattr(way, "kept", None)
    return 0.0 if kept is None else kept * costs.partial


def _full(query: Query, arrivals: Floats) -> Floats:
    """Results of the exact join by the tick of their last row."""
    before = np.concatenate([np.zeros((query.streams, 1)), np.cumsum(arrivals, axis=1)], axis=1)
    ticks = np.arange(arrivals.shape[1])
    windows = before[:, ticks] - before[:, np.maximum(0, ticks - query.window)] + arrivals / 2
    found = np.zeros(arrivals.shape[1])
    for stream in range(query.streams):
        others = np.delete(windows, stream, axis=0)
        found += arrivals[stream] * others.prod(axis=0)
    return found * query.selectivity ** comb(query.streams, 2)


def _loads(done: Done, held: Floats, hosts: Hosts, seconds: float) -> list[float]:
    cpu = done.asked / (hosts.cpu * seconds)
    memory, bandwidth = held / hosts.memory, done.megabytes / (hosts.bandwidth * seconds)
    return [
        Usage(float(c), float(m), float(b)).load() for c, m, b in zip(cpu, memory, bandwidth, strict=True)
    ]


def _count(report: Report, way: Way, sheet: Sheet, done: Done, cluster: Cluster, seconds: float) -> None:
    costs = cluster.costs
    report.seconds += seconds
    report.results += done.results
    report.copies += sheet.sent
    report.partials += done.partials
    report.megabytes += sheet.sent * costs.wire + done.partials * costs.partial
    report.work += done.cpu
    report.table = max(report.table, way.size)
    report.lost += float((sheet.received * (1 - cluster.taken)).sum())
    report.over = max(report.over, float(np.max(done.cpu / (cluster.hosts.cpu * seconds))))
