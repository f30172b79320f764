"""Coordinated tuple routing (CTR): segments live anywhere, and new rows travel to their partners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sparkshed.planner.diffusion.cover import cover
from sparkshed.planner.diffusion.loads import Loads
from sparkshed.planner.diffusion.overhead import Flow
from sparkshed.planner.diffusion.ticks import Ticks

#: Hosts that a segment is placed on at least while few are in use, so that soon all are.
SPREAD = 5
#: The load that every host has beside its work, so that idle ones are not all alike in a cover.
_IDLE = 1e-3
#: A stream, and the segments of it that each host answers for, as bits.
_Answers = tuple[int, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Hop:
    """A hop of a path: which host probes which ticks of a stream.

    Attributes:
        target: The stream that is probed.
        answers: For each host, runs of ticks `(first, last)` that it answers for.
    """

    target: int
    answers: Mapping[int, tuple[tuple[int, int], ...]]

    @property
    def hosts(self) -> list[int]:
        """The hosts, in order."""
        return sorted(self.answers)


@dataclass(frozen=True, slots=True)
class Path:
    """Where new rows of a stream at a tick are kept, and how they travel.

    Attributes:
        keepers: Hosts that keep the rows.
        hops: Hop by hop, the hosts that they and their partial results travel to; none if a window is empty.
        overhead: Rows and partial results that are sent beyond one copy of each row, for each row.
    """

    keepers: tuple[int, ...]
    hops: tuple[Hop, ...]
    overhead: float = 0.0


@dataclass(slots=True)
class _Places:
    """Where the segments of one stream are: for each host, bits of ticks from `base` on.

    `before` has the ticks that have rows of earlier batches.
    """

    base: int
    hosts: dict[int, tuple[int, ...]]
    having: dict[int, int]
    before: int = 0

    def within(self, first: int | None, last: int | None) -> int:
        """Bits of a range of ticks."""
        whole = 1 << (max(self.hosts, default=self.base) - self.base + 1)
        low = 0 if first is None else max(0, first - self.base)
        end = whole if last is None else 1 << max(0, last - self.base + 1)
        return max(0, min(end, whole) - 1) >> low << low

    @property
    def all(self) -> int:
        found = 0
        for own in self.having.values():
            found |= own
        return found


class CoordinatedRouter:
    """A routing table, and paths through it.

    A new segment of stream i is joined hop by hop, in an order of the other streams. For each hop, its
    partners live somewhere; a few hosts with little to do that have all of them are chosen, those of the
    hop before first, since what was found is there already::

        S_1 tick 7 ──▶ hop 1: window of S_2            hop 2: window of S_3
                       host 2: ticks 1-4        ──▶    host 2: ticks 3-5
                       host 4: ticks 5-7        ──▶    host 5: ticks 1-2, 6-7

    The segment itself is kept by the hosts of its first hop. Of several orders the one with the least
    overhead is taken. Where a segment is on several of the hosts that were chosen, one of them answers for
    it, and it is void on the others. All rows of a tick, whenever they come, are kept by the same hosts;
    paths are made anew for each batch, over all that came by then.
    """

    def __init__(self, ticks: Ticks, hosts: int, orders: Sequence[Sequence[Sequence[int]]]) -> None:
        """Start with an empty table.

        Args:
            ticks: What can meet.
            hosts: Number of hosts.
            orders: For each stream, the orders to choose from.
        """
        self._ticks = ticks
        self._orders = orders
        self.loads = Loads(hosts)
        self.flow: Flow | None = None
        self._places = [_Places(0, {}, {}) for _ in ticks.bounds]

    @property
    def size(self) -> int:
        """Entries of the routing table."""
        return sum(len(own.hosts) for own in self._places)

    def route(self, segments: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Path]:
        """The paths of the rows of a batch.

        Args:
            segments: Streams and ticks of all of its rows.

        Returns:
            The path of each.
        """
        ordered = sorted(set(segments), key=lambda own: (own[1], own[0]))
        for stream, tick in ordered:
            if tick not in self._places[stream].hosts:
                self._place(stream, tick)
        paths = {}
        for stream, tick in ordered:
            hops, overhead = self._path(stream, tick)
            paths[stream, tick] = Path(self._places[stream].hosts[tick], hops, overhead)
            for hop in hops:
                for host, answered in hop.answers.items():
                    self.loads.give(host, sum(last - first + 1 for first, last in answered))
        for stream, tick in ordered:
            own = self._places[stream]
            own.before |= 1 << (tick - own.base)
        return paths

    def _place(self, stream: int, tick: int) -> None:
        """Choose the hosts that keep a segment: those of its first hop, and idle ones while these are few."""
        hops, _ = self._path(stream, tick)
        found = hops[0].hosts if hops else []
        others = sorted(set(range(len(self.loads))) - set(found), key=lambda own: (self.loads.of(own), own))
        added = max(0, min(SPREAD, len(self.loads)) - len(found))
        if added < len(others) and not any(own.having.get(others[added]) for own in self._places):
            # No cover would ever choose a host that has nothing.
            added += 1
        keepers = tuple(sorted([*found, *others[:added]]))
        places = self._places[stream]
        if not places.hosts:
            places.base, places.having, places.before = tick, {}, 0
        elif tick < places.base:
            shift = places.base - tick
            places.having = {host: own << shift for host, own in places.having.items()}
            places.before <<= shift
            places.base = tick
        places.hosts[tick] = keepers
        for host in keepers:
            places.having[host] = places.having.get(host, 0) | 1 << (tick - places.base)

    def _path(self, stream: int, tick: int) -> tuple[tuple[Hop, ...], float]:
        """The hops with the least overhead; none if rows can meet nothing."""
        best: tuple[Sequence[_Answers], float] = ((), 0.0)
        loads = {host: _IDLE + self.loads.of(host) for host in range(len(self.loads))}
        for order in self._orders[stream]:
            hops = self._hops(stream, tick, order, loads)
            if not hops:
                return (), 0.0
            overhead = self._overhead(stream, tick, hops)
            if not best[0] or overhead < best[1]:
                best = hops, overhead
        return tuple(self._hop(*answers) for answers in best[0]), best[1]

    def _hop(self, target: int, answers: Mapping[int, int]) -> Hop:
        base = self._places[target].base
        return Hop(target, {host: _runs(own, base) for host, own in answers.items()})

    def _hops(
        self, stream: int, tick: int, order: Sequence[int], loads: Mapping[int, float]
    ) -> list[_Answers]:
        """For each hop, who answers for which segments."""
        hops: list[_Answers] = []
        # Hosts that keep the rows get them anyway.
        former: Sequence[int] = self._places[stream].hosts.get(tick, ())
        for target in order:
            places = self._places[target]
            wanted = self._wanted(stream, tick, target)
            if not wanted:
                return []
            answers = self._cover(wanted, former, places.having, loads)
            hops.append((target, answers))
            former = list(answers)
        return hops

    def _cover(
        self, wanted: int, former: Sequence[int], having: Mapping[int, int], loads: Mapping[int, float]
    ) -> dict[int, int]:
        """Who answers for the wanted segments: hosts of the hop before, for what they have."""
        near = {host: having.get(host, 0) for host in former}
        reused = 0
        for own in near.values():
            reused |= own
        answers = cover(wanted & reused, near, loads)
        answers |= cover(wanted & ~reused, having, loads)
        return answers

    def _wanted(self, stream: int, tick: int, target: int) -> int:
        """Segments that rows can meet: those up to their own, and later ones whose rows came earlier."""
        places = self._places[target]
        if not places.hosts:
            return 0
        first, last = self._ticks.met(stream, tick, target)
        upto = tick if last is None else min(last, tick)
        reached = places.within(first, last)
        return places.all & reached & (places.within(None, upto) | places.before)

    def _overhead(self, stream: int, tick: int, hops: Sequence[_Answers]) -> float:
        """Rows and partial results that travel beyond one copy of each row, for one row."""
        total = len(hops[0][1].keys() | self._places[stream].hosts.get(tick, ())) - 1.0
        partials = 1.0
        for (former, before), (_, answers) in pairwise(hops):
            partials *= 1.0 if self.flow is None else self.flow.matches(stream, former)
            total += partials * len(answers.keys() - before.keys())
        return total

    def forget(self, tick: int) -> None:
        """No row before a tick will come any more: drop the segments that none can meet."""
        for stream, places in enumerate(self._places):
            reach = self._ticks.reach(stream)
            if reach is None:
                continue
            gone = [own for own in places.hosts if own < tick - reach]
            for own in gone:
                del places.hosts[own]
            if gone:
                base = min(places.hosts, default=places.base)
                shifted = {host: own >> (base - places.base) for host, own in places.having.items()}
                places.having = {host: own for host, own in shifted.items() if own} if places.hosts else {}
                places.before = places.before >> (base - places.base) if places.hosts else 0
                places.base = base

    def measure(self, loads: Sequence[float], pieces: float) -> None:
        """Take in the loads of the hosts, which came from so many ticks that were probed."""
        self.loads.measure(loads, pieces)

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        places = [
            {
                "hosts": [[tick, *hosts] for tick, hosts in own.hosts.items()],
                "before": [tick for tick in own.hosts if own.before >> (tick - own.base) & 1],
            }
            for own in self._places
        ]
        return {"places": places, "loads": self.loads.notes()}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self._places = []
        for known in notes["places"]:
            hosts = {tick: tuple(own) for tick, *own in known["hosts"]}
            base = min(hosts, default=0)
            having: dict[int, int] = {}
            for tick, own in hosts.items():
                for host in own:
                    having[host] = having.get(host, 0) | 1 << (tick - base)
            before = sum(1 << (tick - base) for tick in known["before"])
            self._places.append(_Places(base, hosts, having, before))
        self.loads.recall(notes["loads"])


def _runs(ticks: int, base: int) -> tuple[tuple[int, int], ...]:
    """Bits as runs of ticks.

    >>> _runs(0b1011, 10)
    ((10, 11), (13, 13))
    """
    runs = []
    place = 0
    while ticks:
        skip = (ticks & -ticks).bit_length() - 1
        ticks >>= skip
        length = (~ticks & (ticks + 1)).bit_length() - 1
        runs.append((base + place + skip, base + place + skip + length - 1))
        ticks >>= length
        place += skip + length
    return tuple(runs)
