"""Throttles: which share z of the full join's work may be spent. Clocks and measurements are passed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, inf, isfinite, log, sqrt
from statistics import median


@dataclass(slots=True)
class Throttle:
    """The throttle of the paper, for a join that takes rows from buffers.

    Every Δ seconds it compares the rows consumed with the rows arrived, β. If too few were consumed, z
    shrinks by that ratio. Otherwise it opens by the boost. Near the right z that alone makes every second
    interval one with too much work, whose rows are lost. A CPU that knows how busy it was opens only into the
    time that was left, and a load that grows, as it does while windows fill, is met before it is there.

        z 1 |----.        .----        β < 1: z ← β·z
            |    |    .--'             β ≥ 1: z ← min(1, γ·z)
            |    '---'
            +-------------------- time

    Attributes:
        boost: γ, by which z grows when the join keeps up.
        floor: z never falls below it, so that it can come back.
        tolerance: The share of rows that may be lost to chance, when buffers are short, and still count
            as keeping up.
        headroom: The share of the time that the join may use, if it is known how much it used.
        z: The share of the full work.
        beta: The ratio β that was measured last.

    >>> throttle = Throttle()
    >>> throttle.update(consumed=50, arrived=100)
    0.5
    >>> throttle.update(consumed=100, arrived=100)
    0.6
    >>> throttle.update(consumed=100, arrived=100, busy=0.97)
    0.6
    """

    boost: float = 1.2
    floor: float = 1e-4
    tolerance: float = 0.01
    headroom: float = 0.97
    z: float = field(default=1.0, init=False)
    beta: float = field(default=1.0, init=False)
    _demand: float = field(default=0.0, init=False, repr=False)
    _unrest: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check_boost(self.boost, self.floor)

    def update(self, consumed: float, arrived: float, busy: float | None = None) -> float:
        """The new z.

        Args:
            consumed: Rows that were consumed since the last call.
            arrived: Rows that arrived since then.
            busy: The share of that time in which the join worked, if it was measured.
        """
        _check_measured(consumed=consumed, arrived=arrived, busy=busy or 0.0)
        self.beta = consumed / arrived if arrived > 0 else 1.0
        kept_up = self.beta >= 1 - self.tolerance
        growth = self.boost if kept_up else self.beta
        if busy:
            # Rows that were lost would have filled windows, too, so they count for more.
            most = self.boost**_BOLDER if kept_up else self.beta**_LOST
            growth = min(most, self.headroom / self._expected(busy))
        self.z = min(1.0, max(self.floor, growth * self.z))
        return self.z

    def _expected(self, busy: float) -> float:
        """How busy the same z may make the next interval, if the load changes as it did."""
        demand = busy / (min(1.0, self.beta) ** _LOST * self.z) if self.beta > 0 else inf
        rise = demand / self._demand if 0 < self._demand < inf and 0 < demand < inf else 1.0
        self._demand = demand
        change = abs(log(min(max(rise, 1 / _STEEPEST), _STEEPEST)))
        self._unrest += (change - self._unrest) * _NEWS
        growing = min(rise, _STEEPEST) ** _SLOWING if rise > _STEADY else 1.0
        return busy * max(growing, exp(self._unrest))


@dataclass(slots=True)
class BatchThrottle:
    """A throttle for micro-batches, which have a fixed cost that no shedding removes.

    A batch takes a + c·work seconds and should take no longer than the input it covers lasted, I. Only the
    work can be shed:

        |<------------ I seconds of input ------------>|
        |<-- a: fixed -->|<-- c·work: z decides -->|   |
                                                     headroom

    Hosts say how long they joined. That includes what rows cost however little is done with them, so a unit
    of work costs what it did in those of the last batches where it cost little. The rest of a batch is
    fixed cost. Single batches say little of that, since a garbage collection, or a worker that has to read
    its windows, makes a batch longer for nothing, so the median of the last ones counts. If the fixed cost
    alone takes more than a given share of the interval, the throttle plans for longer batches, where it
    weighs less, instead of shedding everything; it keeps to that length unless they should clearly be longer,
    or could be far shorter, so that batches settle.

    z shrinks at once, by more where the load grows, as it does while windows fill. It opens by the boost, or
    by half of the way (in the logarithm) where several batches left much of their time, as after a burst.

    Attributes:
        boost: γ, by which z grows when it is nearly right.
        interval: Seconds of input that a batch should cover: the trigger's interval, or the latency wanted.
        headroom: Share of the time that batches may use.
        fixed_share: Share of the time that the fixed cost may use before batches become longer.
        floor: z never falls below it.
        z: The share of the full work for the next batch.
        beta: Rows processed per second of the last batch over rows arrived per second.
        is_late: Whether the last batch took longer than its input lasted, and far longer than planned.
        allowed: Share of the time that the next batch's input lasted which its work may take.
        fixed: a, seconds.
        unit: c, seconds per work unit. Zero until a batch with work was seen.
    """

    boost: float = 1.2
    interval: float = 1.0
    headroom: float = 0.9
    fixed_share: float = 0.55
    floor: float = 1e-6
    z: float = field(default=1.0, init=False)
    beta: float = field(default=1.0, init=False)
    fixed: float = field(default=0.0, init=False)
    unit: float = field(default=0.0, init=False)
    allowed: float = field(default=1.0, init=False)
    is_late: bool = field(default=False, init=False)
    _span: float = field(default=0.0, init=False, repr=False)
    _kept: int = field(default=0, init=False, repr=False)
    _demand: float = field(default=0.0, init=False, repr=False)
    _ahead: int = field(default=0, init=False, repr=False)
    _fixed: deque[float] = field(default_factory=lambda: deque(maxlen=_MANY), init=False, repr=False)
    _usual: float = field(default=0.0, init=False, repr=False)
    _units: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST), init=False, repr=False)
    _loads: deque[tuple[float, float]] = field(
        default_factory=lambda: deque(maxlen=_FEW), init=False, repr=False
    )

    def __post_init__(self) -> None:
        _check_boost(self.boost, self.floor)
        if not 0 < self.fixed_share < self.headroom <= 1:
            message = (
                "The shares must be 0 < fixed_share < headroom <= 1, "
                f"found fixed_share={self.fixed_share} and headroom={self.headroom}."
            )
            raise ValueError(message)

    @property
    def span(self) -> float:
        """Seconds of input that a batch is planned to cover: the interval, or more for a high fixed cost.

        What rows cost counts as fixed, but longer batches have more of them, so there is an end to that.
        """
        return min(max(self.interval, self._span), _LONGEST * max(1.0, self.interval))

    def update(
        self, work: float, duration: float, rows: float, arriving: float, full_work: float, joining: float
    ) -> float:
        """The new z, after a batch.

        Args:
            work: Work units that the batch did.
            duration: Seconds that it took.
            rows: Rows that it processed.
            arriving: Rows that arrive per second now.
            full_work: Work units that the batch would have done with z = 1.
            joining: Seconds of it in which hosts did that work.
        """
        _check_measured(
            work=work, duration=duration, rows=rows, arriving=arriving, full_work=full_work, joining=joining
        )
        lasted = rows / arriving if arriving > 0 else inf
        self.beta = lasted / duration if rows > 0 and duration > 0 else 1.0
        self.is_late = self.beta < _KEEPS_UP and duration > _FAR * self.span
        self._learn(work, duration, joining)
        self.allowed = self._allowed(duration)
        needed = self.unit * self._expected(full_work, lasted) if rows > 0 else 0.0
        target = self.allowed / needed if needed > 0 else inf
        growth = self._growth(self.unit * work, min(lasted, max(self.span, duration)))
        self.z = min(1.0, max(self.floor, min(target, growth * self.z)))
        return self.z

    def _learn(self, work: float, duration: float, joining: float) -> None:
        """Follow what the work costs, and what batches cost besides."""
        if work > 0 and joining > 0:
            self._usual += _NEWS * (work - self._usual)
            unit, much = joining / work, work > _MUCH * self._usual
            if much and unit > _SLOWER * self.unit:
                # Another machine, or another kind of work: what was known says nothing of it.
                self._units.clear()
            if much or unit < self.unit:
                self._units.append(unit)
                self.unit = sorted(self._units)[len(self._units) // 4]
        self._fixed.append(max(0.0, duration - self.unit * work))
        self.fixed = median(self._fixed)
        self._kept += 1
        wanted = self.fixed / self.fixed_share
        known = self._kept >= _MANY or not self._span
        if known and not self.span / _FAR_LESS < wanted < self.span * _CLEARLY:
            self._span, self._kept = wanted, 0

    def _growth(self, spent: float, lasted: float) -> float:
        """The factor by which z may grow, after a batch whose work took so long."""
        room = self.allowed * lasted / spent if spent > 0 else 1.0
        self._ahead = self._ahead + 1 if room > _AHEAD else 0
        return max(self.boost, sqrt(room)) if self._ahead > 1 else self.boost

    def _allowed(self, duration: float) -> float:
        """The share of the time that the input of the next batch lasted which its work may take.

        That input came while the last batch ran. If it is longer than planned, the next one should be
        shorter, half of the way (in the logarithm), so that what waits becomes less.
        """
        if self.span <= 0:
            return self.headroom
        waits = max(self.span, duration)
        return max(_LEAST_ALLOWED, self.headroom * sqrt(self.span / waits) - self.fixed / waits)

    def _expected(self, full_work: float, lasted: float) -> float:
        """All of the work of the next batch, for each second of its input, if it grows as it did.

        Input comes in files, so one batch may have a file more than another that lasted as long.
        """
        self._loads.append((full_work, lasted))
        loads = list(self._loads)
        usual, demand = _mean(loads), _mean(loads[-2:])
        if usual / _JUMP < demand < usual:
            demand = usual
        rise = demand / self._demand if self._demand > 0 else 1.0
        self._demand = demand
        return demand * min(rise, _STEEPEST) ** _SLOWING if rise > _STEADY else demand


def _mean(loads: Sequence[tuple[float, float]]) -> float:
    """Work per second of some batches."""
    return sum(work for work, _ in loads) / sum(lasted for _, lasted in loads)


_LOST = 1.5  # work grows with the rows that probe and with those that are probed
_BOLDER = 2  # boosts at once, if it is known that there is room
_NEWS = 0.25  # weight of the last change in what is known of changes
_STEADY = 1.15  # a load that grows by less is taken to stay
_STEEPEST = 2.0  # and by more, for an accident
_SLOWING = (
    0.75  # windows that fill make work grow with a power of time: each step grows by less than the last
)
_LEAST_ALLOWED = 0.05  # share of the time that is left for work, however much waits
_KEEPS_UP = 0.9  # a batch that takes longer than its input by less than this is one that keeps up
_FAR = 2.0  # and one that takes longer than planned by less than this is no reason for haste
_AHEAD = 1.5  # batches whose work could be more by this factor leave room
_LONGEST = 4.0  # seconds that batches are planned for at most, or intervals, if these are longer than that
_MOST: int = 24  # batches that tell of the cost of work,
_MANY: int = 9  # of the fixed cost,
_FEW: int = 4  # and of the load
_JUMP = 1.5  # a load that is off by this factor for two batches is another one
_CLEARLY = 1.5  # batches become longer where they should be by this factor,
_FAR_LESS = 3.0  # and shorter by this one: longer ones have more of their time for work
_SLOWER = 3.0  # work that costs more by this factor does so for more than an accident
_MUCH = 0.5  # a batch with less than this share of the usual work says little of what work costs


def _check_boost(boost: float, floor: float) -> None:
    if not boost > 1:
        message = f"The boost must be more than 1, found {boost}."
        raise ValueError(message)
    if not 0 < floor <= 1:
        message = f"The floor must be more than 0 and at most 1, found {floor}."
        raise ValueError(message)


def _check_measured(**values: float) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            message = f"{name} must be finite and not negative, found {value}."
            raise ValueError(message)
