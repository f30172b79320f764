"""ATR in the simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from sparkshed.experiments.diffusion.cluster import Query, Seen
from sparkshed.experiments.diffusion.sheet import Sheet, Store
from sparkshed.planner.diffusion.aligned import LANES, AlignedRouter
from sparkshed.planner.diffusion.climbing import Climber
from sparkshed.planner.diffusion.overhead import Flow, next_master
from sparkshed.planner.diffusion.ticks import Ticks

#: Intervals that a length of segments is judged by, at least; so many times as many where they differ much.
_FEWEST, _LONGER = 8, 4
#: The standard error of a mean that is good enough, as a share of it.
_SURE = 0.05


def ticks_of(query: Query) -> Ticks:
    """What can meet."""
    count = query.streams
    bounds = [[0 if i == k else query.window for k in range(count)] for i in range(count)]
    return Ticks(1, bounds)


def flow_of(query: Query, rates: Sequence[float], reach: float) -> Flow:
    """The streams as routing sees them, where all can meet so many seconds of each other."""
    count = query.streams
    selectivity = tuple(tuple(query.selectivity for _ in range(count)) for _ in range(count))
    return Flow(tuple(rates), ((reach,) * count,) * count, selectivity)


class Aligned:
    """ATR; `adapts` to find the master and the length of segments, or with those of the start for ever."""

    def __init__(self, query: Query, hosts: int, length: int, *, adapts: bool = True) -> None:
        """Start with the first stream as the master.

        Args:
            query: What is joined.
            hosts: Number of hosts.
            length: T at the start, in ticks.
            adapts: Whether the master and T change.
        """
        self._query = query
        self._router = AlignedRouter(ticks_of(query), hosts, 0, length)
        self._climber = Climber(length, 1, 4 * query.window) if adapts else None
        self._seen: list[Seen] = []
        self._settle = 0

    @property
    def size(self) -> int:
        """Entries of the routing table."""
        return self._router.size

    @property
    def length(self) -> int:
        """T, in ticks."""
        return self._router.length

    def route(self, tick: int, rows: Sequence[float], store: Store, sheet: Sheet) -> None:
        """Rows go where their segments, or those of the master, are."""
        router, query = self._router, self._query
        router.forget(tick)
        places = []
        for stream, count in enumerate(rows):
            found = router.route(stream, tick)
            for lane in range(LANES):
                hosts = np.array([host for own, host in found if own == lane], dtype=int)
                if len(hosts):
                    sheet.receive(hosts, count)
                    store.keep(lane, stream, tick, hosts, np.full(len(hosts), count))
                    places.append((stream, lane, hosts))
        store.close(tick)
        masters = {era.lane: era.master for era in router.eras}
        windows = {
            (lane, stream): store.window(lane, stream, tick)
            for lane in masters
            for stream in range(len(rows))
        }
        for stream, lane, hosts in places:
            # The master is probed first: only there is a host's part different from others'.
            order = sorted(query.others(stream), key=lambda own, lane=lane: own != masters[lane])
            sheet.local(rows[stream], hosts, [windows[lane, own][hosts] for own in order], query.match)

    def adapt(self, ticks: int, seen: Seen) -> None:
        """Loads at once; the master and T when those before have shown what they are good for."""
        # Loads are those of the segments that rows of the interval met.
        self._router.measure(seen.loads, self._query.window + ticks)
        self._seen.append(seen)
        # A new length shows when segments that were dealt out before, a window ahead, are over.
        settling = (self._query.window + self._router.length) / ticks
        settled = self._seen[ceil(settling) :]
        shares = [own.share for own in settled]
        if self._climber is None or len(settled) < max(_FEWEST, settling / 2) or not _told_apart(shares):
            return
        self._router.length = self._climber.observe(_mean(shares))
        self._elect([_mean(rates) for rates in zip(*(own.rates for own in settled), strict=True)])
        self._seen = []

    def _elect(self, rates: Sequence[float]) -> None:
        """Another master, if it needs clearly fewer copies."""
        query, router = self._query, self._router
        flow = flow_of(query, rates, 2 * query.window * query.tick)
        length, hosts = router.length * query.tick, len(router.loads)
        router.switch(next_master(flow, router.master, length, hosts))


def _told_apart(shares: Sequence[float]) -> bool:
    """Whether their mean is known well enough to be compared, or will not be soon."""
    if len(shares) >= _LONGER * _FEWEST:
        return True
    return float(np.std(shares)) <= _SURE * len(shares) ** 0.5 * _mean(shares)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
