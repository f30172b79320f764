"""Aligned tuple routing (ATR): the master's segments are dealt out, and all other streams follow them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from sparkshed.planner.diffusion.loads import Loads
from sparkshed.planner.diffusion.ticks import Ticks

#: Eras that may be under way at a time: the one before a change of the master, and the one after it.
LANES = 2


@dataclass(slots=True)
class Era:
    """A time with one master.

    Attributes:
        number: Eras are counted from 0.
        master: The stream whose segments are dealt out.
        floors: Rows of these streams belong to earlier eras before these ticks.
        until: Rows of the master belong to later eras from this tick on; None in the last era.
        cuts: Where segments begin and end, in ticks.
        hosts: The host of each segment.
    """

    number: int
    master: int
    floors: dict[int, int] = field(default_factory=dict)
    until: int | None = None
    cuts: list[int] = field(default_factory=list)
    hosts: list[int] = field(default_factory=list)

    @property
    def lane(self) -> int:
        """Hosts keep eras apart by this number."""
        return self.number % LANES


class AlignedRouter:
    """Which hosts the rows of each stream go to, tick by tick.

    Each result belongs to the host of its master row, and to no other::

        master   |-- host 0 --|-- host 2 --|-- host 1 --|
        slave         |<---- also to host 2 ---->|
                   W before                   W after

    The hosts of segments are chosen as soon as any row comes that could meet them, which is a window before
    their own rows do. So no row has to be sent again, or to wait.

    **Changing the master.** All segments that a row which came already could meet have their hosts by then.
    The old master's rows up to the end of these belong to the old era, and all later ones to the new one,
    in which another stream is the master. A result belongs to the era that its row *of the old master*
    belongs to::

        old master   ... segments of era 0 |  slave in era 1 ...
        new master   ... slave in era 0  . .  segments of era 1 ...
        others       ... to era 0  . . both . .  to era 1 ...

    Around the change, rows go to hosts of both eras, which hosts keep apart.
    """

    def __init__(self, ticks: Ticks, hosts: int, master: int, length: int) -> None:
        """Start without segments.

        Args:
            ticks: What can meet.
            hosts: Number of hosts.
            master: The first master.
            length: T, the ticks of a segment.
        """
        self._ticks = ticks
        self.length = length
        self.loads = Loads(hosts)
        self.eras = [Era(0, master)]
        # The latest tick that had rows.
        self._latest: int | None = None

    @property
    def master(self) -> int:
        """The present one."""
        return self.eras[-1].master

    @property
    def size(self) -> int:
        """Entries of the routing table."""
        return sum(len(era.hosts) for era in self.eras)

    @property
    def ticks(self) -> float:
        """Ticks in all segments that rows can still meet."""
        return float(sum(era.cuts[-1] - era.cuts[0] for era in self.eras if era.cuts))

    def route(self, stream: int, tick: int) -> list[tuple[int, int]]:
        """The lanes and hosts that rows of a stream at a tick go to."""
        self._latest = tick if self._latest is None else max(tick, self._latest)
        found = []
        for era in self.eras:
            if self._belongs(era, stream, tick):
                found += [(era.lane, host) for host in self._hosts(era, stream, tick)]
        return found

    def _belongs(self, era: Era, stream: int, tick: int) -> bool:
        """Whether rows can be part of a result of an era, all of it after the ends of former masters."""
        for former, floor in era.floors.items():
            last = tick if former == stream else self._ticks.met(stream, tick, former)[1]
            if last is not None and last < floor:
                return False
        return True

    def _hosts(self, era: Era, stream: int, tick: int) -> list[int]:
        if stream == era.master:
            first: int | None = tick
            last: int | None = tick
        else:
            first, last = self._ticks.met(stream, tick, era.master)
        if first is None or last is None:
            # It could meet any row of the master.
            self._cover(era, tick, tick + 1)
            return list(range(len(self.loads)))
        first = max(first, era.floors.get(era.master, first))
        last = last if era.until is None else min(last, era.until - 1)
        if first > last:
            return []
        self._cover(era, first, last + 1)
        low, high = bisect_right(era.cuts, first) - 1, bisect_right(era.cuts, last) - 1
        return sorted(set(era.hosts[low : high + 1]))

    def _cover(self, era: Era, first: int, end: int) -> None:
        """Let there be segments for some ticks."""
        if not era.cuts:
            era.cuts = [first]
        if first < era.cuts[0]:
            self._prepend(era, first, min(end, era.cuts[0]))
        if first > era.cuts[-1]:
            self._append(era, first, 0)
        while era.cuts[-1] < end:
            self._append(era, era.cuts[-1] + self.length, self.length)

    def _append(self, era: Era, end: int, pieces: int) -> None:
        """A segment up to a tick; a gap in which nothing came has one, too, and counts for nothing."""
        era.hosts.append(self._given(pieces))
        era.cuts.append(end)

    def _prepend(self, era: Era, first: int, end: int) -> None:
        begins = list(range(first, end, self.length))
        hosts = [self._given(min(self.length, end - begin)) for begin in begins]
        if end < era.cuts[0]:
            begins.append(end)
            hosts.append(self._given(0))
        era.cuts[:0], era.hosts[:0] = begins, hosts

    def _given(self, pieces: int) -> int:
        host = self.loads.least()
        self.loads.give(host, pieces)
        return host

    def switch(self, master: int) -> bool:
        """Make another stream the master for what comes; False where that has to wait.

        It has to while an earlier change is under way, and where the master meets rows of any time.
        """
        old = self.eras[-1]
        if master == old.master:
            return True
        if not old.cuts and len(self.eras) == 1:
            old.master = master
            return True
        if len(self.eras) >= LANES or self._is_endless(old.master) or self._is_endless(master):
            return False
        old.until = old.cuts[-1]
        floors = {**old.floors, old.master: old.until}
        self.eras.append(Era(old.number + 1, master, floors))
        return True

    def _is_endless(self, master: int) -> bool:
        """Whether rows of some stream can meet the master's of any time."""
        others = [stream for stream, _ in enumerate(self._ticks.bounds) if stream != master]
        return any(None in self._ticks.met(stream, 0, master) for stream in others)

    def forget(self, tick: int) -> None:
        """No row before a tick will come any more: drop the segments, and the era, that none can meet."""
        streams = range(len(self._ticks.bounds))
        for era in self.eras:
            reach = self._ticks.reach(era.master)
            if reach is not None:
                gone = max(0, min(len(era.hosts) - 1, bisect_right(era.cuts, tick - reach) - 1))
                del era.cuts[:gone], era.hosts[:gone]
        found = [self._ticks.reach(stream) for stream in streams]
        longest = [reach for reach in found if reach is not None]
        if len(longest) == len(found):
            # Their rows leave the windows a reach later than they can come.
            over = tick - 2 * max(longest)
            self.eras = [era for era in self.eras if era.until is None or over <= era.until]

    def measure(self, loads: list[float], pieces: float) -> None:
        """Take in the loads of the hosts, which came from so many ticks of segments.

        Segments have hosts a window before their rows come, and do not show in any load until then. Were they
        forgotten, a host without work would get all segments of a window, before the first of them keeps it
        busy.
        """
        self.loads.measure(loads, pieces)
        if self._latest is not None:
            for host, ahead in self._ahead(self._latest + 1):
                self.loads.give(host, ahead)

    def _ahead(self, first: int) -> Iterator[tuple[int, int]]:
        """Hosts, and ticks of their segments from the first one on."""
        for era in self.eras:
            end = era.until
            for (begin, cut), host in zip(pairwise(era.cuts), era.hosts, strict=True):
                last = cut if end is None else min(cut, end)
                if last > max(begin, first):
                    yield host, last - max(begin, first)

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {
            "eras": [asdict(era) for era in self.eras],
            "length": self.length,
            "latest": self._latest,
            "loads": self.loads.notes(),
        }

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.eras = [
            Era(**{**era, "floors": {int(stream): tick for stream, tick in era["floors"].items()}})
            for era in notes["eras"]
        ]
        self.length = notes["length"]
        self._latest = notes["latest"]
        self.loads.recall(notes["loads"])
