"""What the driver tells routers: how busy hosts are, how long segments are, and who is the master."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkshed.planner.diffusion.climbing import Climber
from sparkshed.planner.diffusion.loads import Usage, uneven
from sparkshed.planner.diffusion.overhead import Flow, next_master, reach_of
from sparkshed.planner.diffusion.plan import width_of
from sparkshed.planner.diffusion.ticks import Ticks
from sparkshed.planner.streaming import Report, StreamingPlan

#: Seconds between two looks at the loads, where nothing else says how many.
ADAPT = 5.0
#: Loads that differ by less than this, as a coefficient of variation, are left alone.
_EVEN = 0.05
#: What matches count for a look later.
_FORGOTTEN = 0.9
_SECOND = 1_000_000


class Guide:
    """Looks at what hosts reported, every few seconds.

    Loads are told where they differ. Another master is chosen where that saves copies, and another length of
    segments is tried when the last one had time to show: a row must be able to meet all its partners first.
    """

    def __init__(self, plan: StreamingPlan) -> None:
        """Know the plan; nothing was told yet."""
        own, hosts = plan.hosts.router, plan.hosts.count
        assert own is not None
        self._plan, self._router = plan, own
        self._adapt = ADAPT if plan.shedding is None else plan.shedding.policy.adapt
        self._climber = Climber(own.length, 1, own.most)
        self._master = plan.hosts.master
        self._number = 0
        ticks = Ticks(own.tick, plan.spec.bounds)
        streams = range(len(plan.spec.streams))
        self._settling = 2 * max(width_of(ticks, i, k) for i in streams for k in streams) * own.tick / _SECOND
        self._since: float | None = None
        self._climbed: float | None = None
        self._work, self._bytes = [0.0] * hosts, [0.0] * hosts
        self._arrived = [0.0] * len(plan.spec.streams)
        self._met: dict[tuple[int, int], list[float]] = {}
        # Rows, and seconds of the busiest host, since the length changed.
        self._rows = self._seconds = 0.0

    def observe(self, reports: Sequence[Report], ended: float) -> dict[str, Any] | None:
        """Take in a micro-batch; returns what routers must be told, if that is something new.

        Args:
            reports: Of all hosts.
            ended: When it ended, in seconds of any clock.
        """
        if self._since is None or self._climbed is None:
            self._since = self._climbed = ended
        self._count(reports)
        if ended - self._since < self._adapt:
            return None
        seconds, self._since = ended - self._since, ended
        if not any(self._arrived):
            # Whatever is told makes a micro-batch, of which hosts would report again.
            return None
        changed = False
        if self._router.kind == "atr":
            changed = self._changed_length(ended)
            changed |= self._changed_master(seconds)
        loads = self._loads(reports)
        self._work, self._bytes = [0.0] * len(self._work), [0.0] * len(self._bytes)
        self._arrived = [0.0] * len(self._arrived)
        self._forget()
        return self._told(loads) if changed or uneven(loads) > _EVEN else None

    def _count(self, reports: Sequence[Report]) -> None:
        seconds = [0.0] * len(self._work)
        for own in reports:
            host = own.host % len(seconds)
            seconds[host] += own.joining
            self._work[host] += own.effort
            for origin, target, came, left in own.met:
                met = self._met.setdefault((origin, target), [0.0, 0.0])
                met[0], met[1] = met[0] + came, met[1] + left
            for stream, counts in enumerate(own.streams):
                self._arrived[stream] += counts["arrived"]
                self._rows += counts["arrived"]
            if own.routing is not None:
                # A router cannot always do what it is told, and tells what it does.
                self._master = own.routing.get("master", self._master)
                for other, size in enumerate(own.routing["bytes"]):
                    self._bytes[other] += size
        self._seconds += max(seconds)

    def _changed_length(self, ended: float) -> bool:
        assert self._climbed is not None
        if ended - self._climbed < self._settling or self._seconds <= 0:
            return False
        former, self._climbed = self._length, ended
        self._climber.observe(self._rows / self._seconds)
        self._rows = self._seconds = 0.0
        return self._length != former

    @property
    def _length(self) -> int:
        return self._climber.length

    def _changed_master(self, seconds: float) -> bool:
        length = self._length * self._router.tick / _SECOND
        streams = [stream for stream, static in enumerate(self._plan.static) if not static]
        former, hosts = self._master, self._plan.hosts.count
        self._master = next_master(self._flow(seconds), former, length, hosts, streams)
        return self._master != former

    def _flow(self, seconds: float) -> Flow:
        bounds = self._plan.spec.bounds
        rates = tuple(rows / seconds for rows in self._arrived)
        return Flow(rates, reach_of(bounds), ((0.0,) * len(bounds),) * len(bounds))

    def _loads(self, reports: Sequence[Report]) -> list[float]:
        """The combined load of each host; 1 is a fair share of it."""
        held = [0.0] * len(self._work)
        for own in reports:
            held[own.host % len(held)] += own.rows
        used = zip(*map(_shares, (self._work, held, self._bytes)), strict=True)
        return [Usage(*own).load() for own in used]

    def _told(self, loads: list[float]) -> dict[str, Any]:
        self._number += 1
        rounded = [float(f"{load:.4g}") for load in loads]
        return {
            "number": self._number,
            "loads": rounded,
            "length": self._length,
            "master": self._master,
            "climber": self._climber.notes(),
            "matches": self._matches(),
            "met": [[*pair, *map(round, counts)] for pair, counts in sorted(self._met.items())],
        }

    def _forget(self) -> None:
        """What was met long ago counts for less and less."""
        for counts in self._met.values():
            counts[:] = (_FORGOTTEN * count for count in counts)

    def _matches(self) -> list[list[float]]:
        """How many rows of each stream a partial result of each direction matches, lately."""
        streams = range(len(self._plan.spec.streams))
        found = [[1.0 for _ in streams] for _ in streams]
        for (origin, target), (came, left) in self._met.items():
            if came:
                found[origin][target] = float(f"{left / came:.4g}")
        return found

    def resume(self, routing: dict[str, Any]) -> None:
        """Go on from what an earlier run told."""
        self._number, self._master = routing["number"], routing["master"]
        self._climber.recall(routing["climber"])
        self._met = {(origin, target): [came, left] for origin, target, came, left in routing.get("met", ())}


def _shares(used: Sequence[float]) -> list[float]:
    """What hosts use of something, where 1 is a fair share."""
    total = sum(used)
    return [own * len(used) / total if total > 0 else 1.0 for own in used]
