"""The loop on the driver: reports of hosts in, decisions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparkshed.planner.adaptation import Adapter
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.pace import Pace
from sparkshed.planner.streaming import Decision, Report, StreamingPlan, full_name
from sparkshed.planner.throttle import BatchThrottle
from sparkshed.planner.wire import tally_from_json, tally_to_json

#: A throttle that is closer than it was asked for, by this factor or more, calls for a decision at once, and
#: so do hosts that had to shed more than they were told.
_BEHIND = 0.8
#: A throttle that is open farther than it was asked for, by this factor or more, calls for one, too.
_AHEAD = 2.0
#: A throttle that changes by less than this share is not worth a new decision.
_NOTICED = 0.02
#: And hosts keep to a pace that is off by less than this, since they follow what rows cost.
_OFF_PACE = 0.1


@dataclass(frozen=True, slots=True)
class Timing:
    """When a micro-batch ran, in seconds.

    Attributes:
        ended: When it ended.
        duration: How long it took.
        lasted: How long its input took to arrive; 0 if that is not known.
    """

    ended: float
    duration: float
    lasted: float


class ControlLoop:
    """Finds z from what batches cost, and configurations from what hosts learned."""

    def __init__(self, plan: StreamingPlan, *, boost: float = 1.2, interval: float = 1.0) -> None:
        """Start with nothing learned.

        Args:
            plan: What runs; it must shed.
            boost: γ, by which the throttle opens at most.
            interval: Seconds of input that a micro-batch should cover.
        """
        assert plan.shedding is not None
        self._plan = plan
        self._shedding = plan.shedding
        self.adapter: Adapter = plan.shedding.adapter(plan.spec)
        self.throttle = BatchThrottle(boost, interval)
        self.version = 0
        self._interval: Tally | None = None
        self._decided = float("-inf")
        self._published: Configuration | None = None
        self._full_per_row: list[float] | None = None
        self._unasked = False
        self._arriving = 0.0
        # Effort of the interval, and what it would have been with all of the work.
        self._spent = self._full = 0.0
        # z as it was asked for, and what the adapter made of it, by the version of the decision.
        self._asked = {0: (self.z, self.z)}

    @property
    def z(self) -> float:
        """The share of the full join's work that may be spent."""
        return self.throttle.z if self._plan.follows else self._shedding.budget

    def full_work(self, reports: Sequence[Report]) -> list[float]:
        """Work units of each direction that the same rows would have taken without shedding."""
        streams = range(len(self._plan.spec.streams))
        if self._full_per_row is None:
            return [sum(own.work[i] / own.throttle for own in reports) for i in streams]
        rows = [sum(own.tally.directions[i].rows for own in reports) for i in streams]
        done = [sum(own.work[i] for own in reports) for i in streams]
        return [max(float(w), n * f) for w, n, f in zip(done, rows, self._full_per_row, strict=True)]

    def observe(self, reports: Sequence[Report], timing: Timing) -> Decision | None:
        """Take in a micro-batch; returns a decision if it is time for one and it would change much."""
        tally = Tally.sum(own.tally.copy() for own in reports)
        if tally is None or not any(direction.rows for direction in tally.directions):
            return None
        self._throttle(reports, timing)
        shed = any(own.throttle < 1 for own in reports)
        self._unasked = self._plan.follows and not reports[0].version and shed
        if self._interval is None:
            self._interval = tally
        else:
            self._interval.add(tally)
        if self._decided == float("-inf"):
            self._decided = timing.ended - timing.duration
        if self._unasked and self.throttle.unit == 0:
            # Nobody knows yet what there is time for. Hosts go on with what they planned for themselves.
            return None
        early = timing.ended - self._decided < self._shedding.policy.adapt
        if early and not self._behind(reports) and not self._far_ahead(reports) and not self._unasked:
            return None
        self._decided = timing.ended
        return self._decide()

    def _behind(self, reports: Sequence[Report]) -> bool:
        """Whether the last decision is in force, and not enough."""
        if not self._plan.follows or reports[0].version != self.version:
            return False
        asked, told = self._asked[self.version]
        if self.throttle.is_late or self.throttle.z < _BEHIND * asked:
            return True
        return any(own.throttle < _BEHIND * told for own in reports)

    def _far_ahead(self, reports: Sequence[Report]) -> bool:
        """Whether the last decision is in force, and much less than there is time for."""
        if not self._plan.follows or reports[0].version != self.version or not self.version:
            return False
        return self.throttle.z > _AHEAD * self._asked[self.version][0]

    def _throttle(self, reports: Sequence[Report], timing: Timing) -> None:
        """Find z from what a batch cost.

        What all of its work would have cost is taken to be that over z, so that a wrong idea of the full work
        does not matter: z is a factor by which the work should change.
        """
        if not self._plan.follows or timing.lasted <= 0:
            return
        rows = float(sum(own.received for own in reports))
        effort = sum(own.effort for own in reports)
        # Hosts shed more than they were told where they must, and say how much that was.
        full = sum(own.effort / own.throttle for own in reports)
        done = sum(map(sum, (own.work for own in reports)))
        if self.adapter.lags and self._full_per_row is not None and done > 0:
            # Windows that remember what was kept before make the work more or less than z of the whole.
            full = effort * sum(self.full_work(reports)) / done
        elif reports[0].version:
            asked, told = self._asked.get(reports[0].version, (self.throttle.z, self.throttle.z))
            full *= told / asked
        self._arriving = rows / timing.lasted
        self._spent, self._full = self._spent + effort, self._full + full
        joining = max(own.joining for own in reports)
        self.throttle.update(effort, timing.duration, rows, self._arriving, full, joining)

    def _decide(self) -> Decision | None:
        assert self._interval is not None
        interval, self._interval = self._interval, None
        z, former = self.z, self._spent / self._full if self._full > 0 else None
        self._spent = self._full = 0.0
        configuration = self.adapter.adapt(interval, z, former=former)
        self._full_per_row = self.adapter.full_per_row() or self._full_per_row
        if not self.adapter.is_planned or not self._matters(configuration):
            return None
        self.version += 1
        last = self._asked.get(self.version - 1, (z, z))
        self._asked = {self.version - 1: last, self.version: (z, configuration.throttle)}
        self._published = configuration
        return Decision(self.version, configuration, self.figures, self._most)

    @property
    def _most(self) -> float | None:
        """Effort for each row that there is time for; None if that is not known, or if all is promised."""
        unit, arriving = self.throttle.unit, self._arriving
        if not self._plan.follows or unit <= 0 or arriving <= 0:
            return None
        return self.throttle.allowed / (unit * arriving)

    @property
    def figures(self) -> dict[str, float]:
        """What led to the last decision."""
        throttle = self.throttle
        told = {"z": self.z, "beta": throttle.beta, "fixed": throttle.fixed, "unit": throttle.unit}
        return told | {full_name(i): full for i, full in enumerate(self._full_per_row or ())}

    def _matters(self, configuration: Configuration) -> bool:
        last = self._published
        if last is None:
            return self._unasked or not (configuration.is_exact and configuration.orders == self._plan.orders)
        if configuration.is_exact and last.is_exact and configuration.orders == last.orders:
            return False
        same = all(
            getattr(last, name) == getattr(configuration, name)
            for name in ("orders", "dear", "cheap", "partly", "horizons", "sifts")
        )
        moved = _moved(_shares(last), _shares(configuration))
        return not same or moved > _NOTICED or _off_pace(last.pace, configuration.pace)

    def do_everything(self) -> Decision:
        """The decision that a run begins with which does all the work, whatever an earlier one decided."""
        shred = self._shedding.policy.shred
        everything = Configuration(self._plan.orders, shred=shred)
        self.version = 1
        self._published = self.adapter.configuration = everything
        self._asked[self.version] = (1.0, 1.0)
        return Decision(0, everything)

    def remember(self) -> dict[str, Any]:
        """What a later run needs to go on from here."""
        learned = self.adapter.learned
        return {
            "learned": None if learned is None else tally_to_json(learned),
            "corrections": list(self.adapter.corrections),
            "z": self.throttle.z,
            "fixed": self.throttle.fixed,
            "unit": self.throttle.unit,
        }

    def resume(
        self, version: int, decision: dict[str, Any], remembered: dict[str, Any] | None, *, fully: bool
    ) -> None:
        """Go on from what an earlier run left.

        Args:
            version: Of the last decision.
            decision: The last decision.
            remembered: What was remembered with it.
            fully: Whether this run does all the work, which it was told by a decision of its own.
        """
        if version < self.version:
            return
        self.version = version + 1 if fully else version
        configuration = Decision.from_json(decision).configuration
        if fully:
            configuration = Configuration(configuration.orders, shred=self._shedding.policy.shred)
        self._published = self.adapter.configuration = configuration
        z = 1.0 if fully else configuration.throttle
        self._asked[self.version] = (z, configuration.throttle)
        if remembered is None:
            return
        if remembered["learned"] is not None:
            self.adapter.learned = tally_from_json(remembered["learned"])
        self.adapter.corrections = list(remembered["corrections"])
        if not fully:
            self.throttle.z = remembered["z"]
            self._asked[version] = (remembered["z"], configuration.throttle)
        self.throttle.fixed, self.throttle.unit = remembered["fixed"], remembered["unit"]


def _shares(configuration: Configuration) -> tuple[float, ...]:
    own = configuration
    return own.throttle, own.mix, own.shred, own.price, *own.keep, *own.rear


def _off_pace(last: Pace | None, new: Pace | None) -> bool:
    """Whether rows may cost something else than hosts know, as slices do whose rate changed."""
    if last is None or new is None:
        return last is not new
    return _moved((last.interval, *last.promised), (new.interval, *new.promised)) > _OFF_PACE


def _moved(old: Sequence[float], new: Sequence[float]) -> float:
    """The largest change of a number, as a share of what it was."""
    return max(abs(now - then) / max(then, 1e-9) for now, then in zip(new, old, strict=True))
