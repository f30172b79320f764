"""CTR in the simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.experiments.diffusion.aligned import flow_of, ticks_of
from sparkshed.experiments.diffusion.cluster import Query, Seen
from sparkshed.experiments.diffusion.sheet import Sheet, Store
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter


class Coordinated:
    """CTR, with the orders that begin with each other stream."""

    def __init__(self, query: Query, hosts: int, router: CoordinatedRouter | None = None) -> None:
        """Start with an empty table; the router is the real one by default."""
        self._query = query
        self.router = router or CoordinatedRouter(ticks_of(query), hosts, orders_of(query))
        self._probed = 0

    @property
    def size(self) -> int:
        """Entries of the routing table."""
        return self.router.size

    def route(self, tick: int, rows: Sequence[float], store: Store, sheet: Sheet) -> None:
        """Rows are kept where their path says, and travel on it."""
        self.router.forget(tick)
        paths = self.router.route([(stream, tick) for stream, count in enumerate(rows) if count])
        for (stream, own), path in paths.items():
            keepers = np.array(path.keepers)
            store.keep(0, stream, own, keepers, np.full(len(keepers), rows[stream]))
            first = path.hops[0].hosts if path.hops else []
            sheet.receive(np.array(sorted({*path.keepers, *first})), rows[stream])
        store.close(tick)
        for (stream, _), path in paths.items():
            hops = []
            for hop in path.hops:
                there = [
                    sum(
                        store.between(hop.target, host, first, last, tick)
                        for first, last in hop.answers[host]
                    )
                    for host in hop.hosts
                ]
                hops.append((hop.hosts, there))
                self._probed += sum(last - first + 1 for runs in hop.answers.values() for first, last in runs)
            if hops:
                sheet.chain(rows[stream], hops, self._query.match)

    def adapt(self, ticks: int, seen: Seen) -> None:
        """Loads, and how many partial results there will be."""
        self.router.measure(seen.loads, self._probed)
        self.router.flow = flow_of(self._query, seen.rates, self._query.window * self._query.tick)
        self._probed = 0


def orders_of(query: Query, most: int = 2) -> list[list[list[int]]]:
    """Orders for each stream: those with few rows first, then others that begin with another stream."""
    found = []
    for stream in range(query.streams):
        others = query.others(stream)
        found.append([[own, *(k for k in others if k != own)] for own in others[:most]])
    return found
