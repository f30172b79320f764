"""Coordinated tuple routing (CTR): segments live anywhere, and new rows travel to their partners."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from typing import Any

from sparkshed.planner.diffusion.cover import cover
from sparkshed.planner.diffusion.loads import Loads
from sparkshed.planner.diffusion.overhead import Flow
from sparkshed.planner.diffusion.ticks import Ticks

#: The load that every host has beside its work, so that idle ones are not all alike in a cover.
_IDLE = 1e-3
#: A stream, the place where bits begin, and the segments that each host answers for, as bits.
_Answers = tuple[int, int, Mapping[int, int]]


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
    """Where the segments of one stream are: for each host, bits of places in the list of ticks.

    Only ticks that have rows are in the list, however far apart they are. `before` has the bits of those that
    have rows of earlier batches.
    """

    ticks: list[int] = field(default_factory=list)
    hosts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    having: dict[int, int] = field(default_factory=dict)
    before: int = 0

    def add(self, tick: int, hosts: tuple[int, ...]) -> None:
        """A new segment, and the hosts that keep it."""
        place = bisect_left(self.ticks, tick)
        if place < len(self.ticks):
            self.having = {host: _apart(own, place) for host, own in self.having.items()}
            self.before = _apart(self.before, place)
        self.ticks.insert(place, tick)
        self.hosts[tick] = hosts
        for host in hosts:
            self.having[host] = self.having.get(host, 0) | 1 << place

    def note(self, tick: int) -> None:
        """A segment has rows of an earlier batch from now on."""
        self.before |= 1 << bisect_left(self.ticks, tick)

    def within(self, first: int | None, last: int | None) -> range:
        """The places of a range of ticks."""
        begin = 0 if first is None else bisect_left(self.ticks, first)
        return range(begin, len(self.ticks) if last is None else bisect_right(self.ticks, last))

    def drop(self, tick: int) -> None:
        """Forget the segments before a tick."""
        gone = bisect_left(self.ticks, tick)
        for own in self.ticks[:gone]:
            del self.hosts[own]
        del self.ticks[:gone]
        self.having = {host: left for host, own in self.having.items() if (left := own >> gone)}
        self.before >>= gone


def spread_of(hosts: int) -> int:
    """Hosts that a segment is placed on at least, so that soon all are in use.

    On few, windows would have hosts in common, and these all of the work; on many, each would need the memory
    of all. With the square root of their number, most windows meet on some host, as rows and columns do.

    >>> [spread_of(hosts) for hosts in (1, 2, 3, 4, 30, 250)]
    [1, 2, 2, 3, 6, 16]
    """
    return min(hosts, isqrt(hosts) + 1)


def _apart(bits: int, place: int) -> int:
    """Bits with room for one more at a place.

    >>> bin(_apart(0b1011, 2))
    '0b10011'
    """
    return bits & (1 << place) - 1 | bits >> place << place + 1


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
        self._places = [_Places() for _ in ticks.bounds]

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
            self._places[stream].note(tick)
        return paths

    def _place(self, stream: int, tick: int) -> None:
        """Choose the hosts that keep a segment: those of its first hop, and idle ones while these are few."""
        hops, _ = self._path(stream, tick)
        found = hops[0].hosts if hops else []
        others = sorted(set(range(len(self.loads))) - set(found), key=lambda own: (self.loads.of(own), own))
        added = max(0, spread_of(len(self.loads)) - len(found))
        if added < len(others) and not any(own.having.get(others[added]) for own in self._places):
            # No cover would ever choose a host that has nothing.
            added += 1
        keepers = tuple(sorted([*found, *others[:added]]))
        self._places[stream].add(tick, keepers)

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

    def _hop(self, target: int, begin: int, answers: Mapping[int, int]) -> Hop:
        ticks = self._places[target].ticks
        runs = {host: _runs(own, begin) for host, own in answers.items()}
        # Between two neighbours in the list there are no rows.
        return Hop(
            target, {host: tuple((ticks[one], ticks[two]) for one, two in own) for host, own in runs.items()}
        )

    def _hops(
        self, stream: int, tick: int, order: Sequence[int], loads: Mapping[int, float]
    ) -> list[_Answers]:
        """For each hop, who answers for which segments."""
        hops: list[_Answers] = []
        # Hosts that keep the rows get them anyway.
        former: Sequence[int] = self._places[stream].hosts.get(tick, ())
        for target in order:
            begin, wanted = self._wanted(stream, tick, target)
            if not wanted:
                return []
            only = (1 << wanted.bit_length()) - 1
            all_of = self._places[target].having
            having = {host: own for host, bits in all_of.items() if (own := bits >> begin & only)}
            answers = self._cover(wanted, former, having, loads)
            hops.append((target, begin, answers))
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

    def _wanted(self, stream: int, tick: int, target: int) -> tuple[int, int]:
        """Segments that rows can meet: those up to their own, and later ones whose rows came earlier.

        Returns:
            The first place of the range, and bits from there on.
        """
        places = self._places[target]
        first, last = self._ticks.met(stream, tick, target)
        reached = places.within(first, last)
        upto = places.within(first, tick if last is None else min(last, tick))
        whole, sure = (1 << len(reached)) - 1, (1 << len(upto)) - 1
        return reached.start, (places.before >> reached.start | sure) & whole

    def _overhead(self, stream: int, tick: int, hops: Sequence[_Answers]) -> float:
        """Rows and partial results that travel beyond one copy of each row, for one row."""
        total = len(hops[0][2].keys() | self._places[stream].hosts.get(tick, ())) - 1.0
        partials = 1.0
        for (former, _, before), (_, _, answers) in pairwise(hops):
            partials *= 1.0 if self.flow is None else self.flow.matches(stream, former)
            total += partials * len(answers.keys() - before.keys())
        return total

    def forget(self, tick: int) -> None:
        """No row before a tick will come any more: drop the segments that none can meet."""
        for stream, places in enumerate(self._places):
            reach = self._ticks.reach(stream)
            if reach is None:
                continue
            places.drop(tick - reach)

    def measure(self, loads: Sequence[float], pieces: float) -> None:
        """Take in the loads of the hosts, which came from so many ticks that were probed."""
        self.loads.measure(loads, pieces)

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        places = [
            {
                "hosts": [[tick, *own.hosts[tick]] for tick in own.ticks],
                "before": [tick for place, tick in enumerate(own.ticks) if own.before >> place & 1],
            }
            for own in self._places
        ]
        return {"places": places, "loads": self.loads.notes()}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self._places = []
        for known in notes["places"]:
            places = _Places()
            for tick, *hosts in sorted(known["hosts"]):
                places.add(tick, tuple(hosts))
            for tick in known["before"]:
                places.note(tick)
            self._places.append(places)
        self.loads.recall(notes["loads"])


def _runs(bits: int, begin: int) -> tuple[tuple[int, int], ...]:
    """Bits as runs of places.

    >>> _runs(0b1011, 10)
    ((10, 11), (13, 13))
    """
    runs = []
    place = begin
    while bits:
        skip = (bits & -bits).bit_length() - 1
        bits >>= skip
        length = (~bits & (bits + 1)).bit_length() - 1
        runs.append((place + skip, place + skip + length - 1))
        bits >>= length
        place += skip + length
    return tuple(runs)
