"""What hosts are to do in an interval: rows that they get, keep and probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparkshed.engine.arrays import Floats

Ints = NDArray[np.int64]
#: Eras that hosts keep apart; all ways but ATR have one.
LANES = 2


class Store:
    """How many rows of each stream each host keeps, by tick and lane."""

    def __init__(self, streams: int, ticks: int, hosts: int, window: int) -> None:
        """Start with nothing.

        Args:
            streams: How many.
            ticks: Of the run.
            hosts: How many.
            window: Ticks after which rows leave.
        """
        self.kept = np.zeros((LANES, streams, ticks, hosts))
        # Rows before each tick.
        self._before = np.zeros((LANES, streams, ticks + 1, hosts))
        self._window = window

    def keep(self, lane: int, stream: int, tick: int, hosts: Ints, rows: Floats) -> None:
        """Hosts keep rows of a tick; no host is named twice."""
        self.kept[lane, stream, tick, hosts] += rows

    def close(self, tick: int) -> None:
        """All rows of a tick are there."""
        self._before[:, :, tick + 1] = self._before[:, :, tick] + self.kept[:, :, tick]

    def window(self, lane: int, stream: int, tick: int) -> Floats:
        """Rows of the window of each host that came before a row of a tick; of the tick itself, half did."""
        before, first = self._before[lane, stream], max(0, tick - self._window)
        found: Floats = before[tick] - before[first] + self.kept[lane, stream, tick] / 2
        return found

    def between(self, stream: int, host: int, first: int, last: int, tick: int) -> float:
        """Likewise for one host, and the ticks from the first to the last one."""
        before = self._before[0, stream]
        found = before[min(last + 1, tick), host] - before[min(max(0, first), tick), host]
        return float(found + (self.kept[0, stream, tick, host] / 2 if first <= tick <= last else 0.0))

    def held(self, tick: int) -> Floats:
        """Rows that each host holds, of all streams."""
        found = self._before[:, :, tick + 1] - self._before[:, :, max(0, tick + 1 - self._window)]
        total: Floats = found.sum(axis=(0, 1))
        return total


@dataclass(frozen=True, slots=True)
class Probes:
    """Probes of one hop: rows or partial results at hosts, and what they are compared with.

    Attributes:
        flows: Whose.
        hosts: Where.
        candidates: Rows that each is compared with.
        match: The share of them that match.
        own: The probe of the hop before at the same host, whose results need not travel; -1 if there is none.
        fan: Other hosts that each result has to go to.
        ending: Flows whose last hop this is.
    """

    flows: Ints
    hosts: Ints
    candidates: Floats
    match: Floats
    own: Ints
    fan: Floats
    ending: Ints


class Sheet:
    """The work of an interval.

    A flow is a number of rows that take the same way, hop by hop::

        rows ──▶ hosts of hop 1 ──▶ partial results ──▶ hosts of hop 2 ──▶ results

    What is found at any host of a hop goes to all hosts of the next one.
    """

    def __init__(self, hosts: int) -> None:
        """Start with nothing to do."""
        self.hosts = hosts
        self.received = np.zeros(hosts)
        self.sent = 0.0
        self._rows: list[Floats] = []
        self._count = 0
        self._hops: list[list[tuple[Ints, Ints, Floats, Floats]]] = []

    def receive(self, hosts: Ints, rows: float) -> None:
        """Hosts get copies of rows."""
        self.received[hosts] += rows
        self.sent += rows * len(hosts)

    def local(self, rows: float, hosts: Ints, candidates: Sequence[Floats], match: Sequence[float]) -> None:
        """Each host joins rows by itself: a flow for each."""
        flows = self._flows(np.full(len(hosts), rows))
        for hop, (found, share) in enumerate(zip(candidates, match, strict=True)):
            self._add(hop, flows, hosts, found, np.full(len(hosts), share))

    def chain(
        self, rows: float, hops: Sequence[tuple[Sequence[int], Sequence[float]]], match: Sequence[float]
    ) -> int:
        """Rows travel from hop to hop: the hosts of each, and what they have there; returns the flow."""
        flow = self._flows(np.array([rows]))[0]
        for hop, ((hosts, candidates), share) in enumerate(zip(hops, match, strict=True)):
            count = len(hosts)
            self._add(hop, np.full(count, flow), np.array(hosts), np.array(candidates), np.full(count, share))
        return int(flow)

    def _flows(self, rows: Floats) -> Ints:
        first = self._count
        self._rows.append(rows)
        self._count += len(rows)
        return np.arange(first, self._count)

    def _add(self, hop: int, flows: Ints, hosts: Ints, candidates: Floats, match: Floats) -> None:
        while len(self._hops) <= hop:
            self._hops.append([])
        self._hops[hop].append((flows, hosts, candidates, match))

    @property
    def rows(self) -> Floats:
        """Rows of each flow."""
        return np.concatenate(self._rows) if self._rows else np.zeros(0)

    def hops(self) -> list[Probes]:
        """The probes of each hop."""
        columns = [
            tuple(np.concatenate([part[place] for part in hop]) for place in range(4)) for hop in self._hops
        ]
        keys = [flows * self.hosts + hosts for flows, hosts, _, _ in columns]
        found = []
        for hop, (flows, hosts, candidates, match) in enumerate(columns):
            own = np.full(len(flows), -1) if hop == 0 else _places(keys[hop], keys[hop - 1])
            further = columns[hop + 1][0] if hop + 1 < len(columns) else np.zeros(0, dtype=int)
            others = np.bincount(further, minlength=self._count)[flows]
            near = _places(keys[hop], keys[hop + 1]) >= 0 if len(further) else False
            fan = np.where(others, others - near, 0).astype(float)
            ending = np.unique(flows[others == 0])
            found.append(Probes(flows, hosts, candidates, match, own, fan, ending))
        return found


def _places(wanted: Ints, keys: Ints) -> Ints:
    """Where each of some numbers is among others; -1 if it is not there.

    >>> _places(np.array([3, 5]), np.array([4, 5, 1])).tolist()
    [-1, 1]
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.argsort(keys, kind="stable")
    found = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    places = order[found]
    return np.where(keys[places] == wanted, places, -1)
