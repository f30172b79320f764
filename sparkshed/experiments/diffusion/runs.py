"""Runs of all ways on the same streams and hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from sparkshed.experiments.diffusion.aligned import Aligned
from sparkshed.experiments.diffusion.arrivals import bursty, poisson, rates_of
from sparkshed.experiments.diffusion.cluster import Query, Report, Way, simulate
from sparkshed.experiments.diffusion.coordinated import Coordinated
from sparkshed.experiments.diffusion.hosts import Costs, Hosts
from sparkshed.experiments.diffusion.rivals import Centralised, Partitioned, Shuffled, Unaware

#: Seconds of a tick, of most cases; ATR cannot make shorter segments, and segments of CTR are as long.
TICK = 0.5
#: Seconds between reports of loads.
INTERVAL = 5.0
#: T of ATR that does not adapt, and of the other one at the start, in seconds.
LENGTH = 5.0
#: Mean seconds of a HIGH or LOW period.
PERIOD = 10.0

#: Costs of rows that are small: megabytes in memory and on the network.
SMALL = Costs(row=0.1, wire=0.025)

Make = Callable[[Query, Hosts, int], Way]
WAYS: dict[str, Make] = {
    "atr": lambda query, hosts, seed: Aligned(query, len(hosts), round(LENGTH / query.tick)),
    "ctr": lambda query, hosts, seed: Coordinated(query, len(hosts)),
    "atr_unoptimised": lambda query, hosts, seed: Aligned(
        query, len(hosts), round(LENGTH / query.tick), adapts=False
    ),
    "ctr_unoptimised": lambda query, hosts, seed: Coordinated(
        query, len(hosts), Shuffled(query, len(hosts), np.random.default_rng([seed, 2]))
    ),
    "operators": lambda query, hosts, seed: Partitioned(query, hosts),
    "unaware": lambda query, hosts, seed: Unaware(query, len(hosts)),
    "centralised": lambda query, hosts, seed: Centralised(query, hosts),
}
#: What is in the paper's figures of simulated clusters.
COMPARED = ("atr", "ctr", "atr_unoptimised", "ctr_unoptimised", "operators")


@dataclass(frozen=True, slots=True)
class Case:
    """A join on a cluster.

    Attributes:
        streams: How many.
        window: Seconds.
        hosts: How many.
        selectivity: Of each pair of streams.
        factor: Rates are so many times those of the paper.
        burst: θ, the bursty ratio; None for a Poisson process.
        small: Rows are as small as in fig. 4, so that memory and network are never short.
        overload: Rates are such that comparing all rows takes so many times what all hosts can do; None for
            those of the paper.
        tick: Seconds of a tick.
    """

    streams: int = 3
    window: float = 30.0
    hosts: int = 30
    selectivity: float = 0.1
    factor: float = 1.0
    burst: float | None = None
    small: bool = False
    overload: float | None = None
    tick: float = TICK

    def costs(self) -> Costs:
        """What rows cost."""
        return SMALL if self.small else Costs()

    def cluster(self, seed: int) -> Hosts:
        """The hosts."""
        return Hosts.drawn(self.hosts, np.random.default_rng([seed, 1]), self.costs())


@cache
def run(case: Case, name: str, seed: int, quick: bool) -> Report:
    """Run a way; what counts is the same end of the same streams for all.

    ATR that adapts begins a long time before, because it takes its time to find T. All hosts begin empty.
    """
    counted = 100.0 if quick else 1500.0
    longest, shortest = (1200.0, 100.0) if quick else (1500.0, 200.0)
    query, arrivals = streams_of(case, seed, longest + counted)
    warm_up = longest if name == "atr" else shortest
    first, hosts = round((longest - warm_up) / case.tick), case.cluster(seed)
    return simulate(
        query,
        arrivals[:, first:],
        hosts,
        WAYS[name](query, hosts, seed),
        case.costs(),
        interval=round(INTERVAL / case.tick),
        warm_up=round(warm_up / case.tick),
    )


def streams_of(case: Case, seed: int, seconds: float) -> tuple[Query, np.ndarray]:
    """The streams of a case; more of them are the same ones and others."""
    rng = np.random.default_rng([seed, 0])
    rates = tuple(case.factor * rate for rate in rates_of(case.streams, rng))
    query = Query(case.streams, round(case.window / case.tick), case.selectivity, rates, case.tick)
    if case.overload is not None:
        work = case.overload * float(case.cluster(seed).cpu.sum())
        query = faster(query, work / case.costs().comparison)
    ticks = round(seconds / case.tick)
    if case.burst is None:
        return query, poisson(query.rates, ticks, case.tick, rng)
    return query, bursty(query.rates, ticks, case.tick, case.burst, PERIOD, rng)


def faster(query: Query, comparisons: float) -> Query:
    """The same join with rates for so many comparisons in a second.

    >>> query = faster(Query(2, 20, 0.1, (1.0, 3.0), 0.5), 6000.0)
    >>> [round(rate, 3) for rate in query.rates], round(query.comparisons)
    ([10.0, 30.0], 6000)
    """
    low, high = 1e-6, 1e6
    while high > low * (1 + 1e-9):
        middle = (low * high) ** 0.5
        scaled = replace(query, rates=tuple(middle * rate for rate in query.rates))
        low, high = (low, middle) if scaled.comparisons > comparisons else (middle, high)
    return scaled


def throughputs(case: Case, names: Sequence[str], seed: int, quick: bool) -> dict[str, float]:
    """Results per second of each way, and how many there could be."""
    found = {name: run(case, name, seed, quick) for name in names}
    row = {name: float(f"{report.throughput:.4g}") for name, report in found.items()}
    some = next(iter(found.values()))
    return {**row, "full": float(f"{some.full / some.seconds:.4g}")}
