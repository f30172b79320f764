"""What ATR and CTR are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparkshed.experiments.diffusion.aligned import ticks_of
from sparkshed.experiments.diffusion.cluster import Query, Seen
from sparkshed.experiments.diffusion.coordinated import orders_of
from sparkshed.experiments.diffusion.hosts import Hosts
from sparkshed.experiments.diffusion.sheet import Sheet, Store
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter
from sparkshed.planner.diffusion.loads import Loads


class Unaware:
    """Rows go to the least loaded host, tick by tick, whatever they have to meet."""

    size = 0

    def __init__(self, query: Query, hosts: int) -> None:
        """Start with idle hosts."""
        self._query = query
        self._loads = Loads(hosts)

    def route(self, tick: int, rows: Sequence[float], store: Store, sheet: Sheet) -> None:
        """Each stream's rows of a tick go to one host."""
        places = []
        for stream, count in enumerate(rows):
            host = self._place()
            places.append(np.array([host]))
            sheet.receive(places[-1], count)
            store.keep(0, stream, tick, places[-1], np.array([count]))
        store.close(tick)
        for stream, hosts in enumerate(places):
            there = [store.window(0, own, tick)[hosts] for own in self._query.others(stream)]
            sheet.local(rows[stream], hosts, there, self._query.match)

    def _place(self) -> int:
        host = self._loads.least()
        self._loads.give(host, 1)
        return host

    def adapt(self, ticks: int, seen: Seen) -> None:
        """Loads only."""
        self._loads.measure(seen.loads, ticks * self._query.streams)


class Centralised(Unaware):
    """Everything is on the host with the fastest CPU."""

    def __init__(self, query: Query, hosts: Hosts) -> None:
        """Choose the host."""
        super().__init__(query, len(hosts))
        self._host = int(np.argmax(hosts.cpu))

    def _place(self) -> int:
        return self._host


class Partitioned:
    """Operator partitioning: each two-way join of a left-deep tree has a host of its own, the fastest ones.

    ::

        S_1 ─┐
             ├─▶ ⋈ host 1 ──▶ pairs ─┐
        S_2 ─┘                       ├─▶ ⋈ host 2 ──▶ …
        S_3 ─────────────────────────┘

    A host keeps the rows of its right stream, and what came from the left: rows of the first stream, or
    results of the join before. The streams with few rows come first; the slowest of the hosts joins these.
    """

    size = 0

    def __init__(self, query: Query, hosts: Hosts) -> None:
        """Choose a host for each join."""
        self._query = query
        count = min(query.streams - 1, len(hosts))
        fastest = np.argsort(-hosts.cpu)[:count][::-1]
        self._hosts = [int(fastest[min(join, count - 1)]) for join in range(query.streams - 1)]
        self._order = sorted(range(query.streams), key=lambda k: (query.rates[k], k))
        # For each join and interval: partial results that came from the left, of two streams at least.
        self._left: list[list[float]] = [[] for _ in self._hosts]
        self.kept = np.zeros(len(hosts))
        # The flow, hop and join of what goes up the tree in this interval.
        self._going: list[tuple[int, int, int]] = []

    def route(self, tick: int, rows: Sequence[float], store: Store, sheet: Sheet) -> None:
        """Rows go to the host of their join, and their results up the tree."""
        joins = range(len(self._hosts))
        for place, stream in enumerate(self._order):
            host = np.array([self._hosts[max(0, place - 1)]])
            sheet.receive(host, rows[stream])
            store.keep(0, stream, tick, host, np.array([rows[stream]]))
        store.close(tick)
        for place, stream in enumerate(self._order):
            hops, match = [], []
            for join in joins[max(0, place - 1) :]:
                host = self._hosts[join]
                left = join == place - 1
                found = self._alive(join) if left and join else self._right(join, left, store, tick, host)
                hops.append(([host], [found]))
                match.append(self._query.selectivity ** (place if left else join + 1))
            flow = sheet.chain(rows[stream], hops, match)
            self._going += [(flow, hop, join + 1) for hop, join in enumerate(joins[max(0, place - 1) : -1])]

    def _right(self, join: int, left: bool, store: Store, tick: int, host: int) -> float:
        """Rows of the window that a join probes: those of its right stream, or of the first one."""
        stream = self._order[0 if left else join + 1]
        return float(store.window(0, stream, tick)[host])

    def _alive(self, join: int) -> float:
        """Partial results of a join's left side that are in all windows.

        They were found with their youngest row, and one in j of those with j rows still has the oldest.
        """
        return sum(self._left[join]) / (join + 1)

    def adapt(self, ticks: int, seen: Seen) -> None:
        """Nothing can be moved; what was found is kept for the next interval."""
        found = np.zeros(len(self._hosts))
        for flow, hop, join in self._going:
            found[join] += seen.found[hop][flow]
        self._going = []
        self.kept[:] = 0
        for join, host in enumerate(self._hosts):
            self._left[join] = [*self._left[join], float(found[join])][-(self._query.window // ticks) :]
            self.kept[host] += self._alive(join)


class Shuffled(CoordinatedRouter):
    """CTR that covers windows with hosts at random, in one order, whoever was on the hop before."""

    def __init__(self, query: Query, hosts: int, rng: np.random.Generator) -> None:
        """Start with an empty table."""
        super().__init__(ticks_of(query), hosts, orders_of(query, 1))
        self._rng = rng

    def _cover(
        self, wanted: int, former: Sequence[int], having: Mapping[int, int], loads: Mapping[int, float]
    ) -> dict[int, int]:
        answers: dict[int, int] = {}
        for host in self._rng.permutation(sorted(having)):
            own = having[int(host)] & wanted
            if own:
                answers[int(host)] = own
                wanted &= ~own
        return dict(sorted(answers.items()))
