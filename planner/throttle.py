"""Throttles: which share z of the full join's work may be spent. Clocks and measurements are passed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf, isfinite, log, sqrt


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

    a and c are fitted to the last batches. Rows cost something, too, however little is done with them, and
    more rows mean more work, so a fit may take the one for the other; the engine's own clock says what the
    work can have cost at most. If the fixed cost alone takes more than a given share of the interval, the
    throttle plans for longer batches, where it weighs less, instead of shedding everything. z shrinks at
    once, by more where the load grows, as it does while windows fill. It opens by the boost, or by half of
    the way (in the logarithm) where several batches left much of their time, as after a burst. A first batch
    without work shows the fixed cost at once; otherwise it is learned when the work changes.

    Attributes:
        boost: γ, by which z grows when it is nearly right.
        interval: Seconds of input that a batch should cover: the trigger's interval, or the latency wanted.
        headroom: Share of the time that batches may use.
        fixed_share: Share of the time that the fixed cost may use before batches become longer.
        memory: Weight of a batch in the fit, compared with the batch after it.
        floor: z never falls below it.
        z: The share of the full work for the next batch.
        beta: Rows processed per second of the last batch over rows arrived per second.
        is_late: Whether the last batch took longer than its input lasted, and longer than batches are planned
            to. One that is only longer than the one before it is not.
        allowed: Share of the time that the next batch's input lasted which its work may take.
        fixed: a, seconds.
        unit: c, seconds per work unit. Zero until a batch with work was seen.
    """

    boost: float = 1.2
    interval: float = 1.0
    headroom: float = 0.9
    fixed_share: float = 0.5
    memory: float = 0.7
    floor: float = 1e-6
    z: float = field(default=1.0, init=False)
    beta: float = field(default=1.0, init=False)
    fixed: float = field(default=0.0, init=False)
    unit: float = field(default=0.0, init=False)
    allowed: float = field(default=1.0, init=False)
    is_late: bool = field(default=False, init=False)
    _needed: float = field(default=0.0, init=False, repr=False)
    _shortest: float = field(default=0.0, init=False, repr=False)
    _ahead: int = field(default=0, init=False, repr=False)
    _stumbled: bool = field(default=False, init=False, repr=False)
    _fit: _Fit = field(default_factory=lambda: _Fit(), init=False, repr=False)

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
        longest = _LONGEST * max(1.0, self.interval)
        return max(self.interval, min(longest, self.fixed / self.fixed_share))

    def update(
        self,
        work: float,
        duration: float,
        rows: float,
        arriving: float,
        full_work: float,
        engine: float | None = None,
    ) -> float:
        """The new z, after a batch.

        Args:
            work: Work units that the batch did.
            duration: Seconds that it took.
            rows: Rows that it processed.
            arriving: Rows that arrive per second now.
            full_work: Work units that the batch would have done with z = 1.
            engine: Seconds of it in which the engine joined, if that was measured.
        """
        _check_measured(work=work, duration=duration, rows=rows, arriving=arriving, full_work=full_work)
        self._learn(work, duration)
        if engine is not None:
            self._trust(work, engine)
        lasted = rows / arriving if arriving > 0 else inf
        self.beta = lasted / duration if rows > 0 and duration > 0 else 1.0
        self.is_late = self.beta < _KEEPS_UP and duration > self.span
        needed = self._expected(self.unit * full_work / lasted if rows > 0 else 0.0)
        self.allowed = self._allowed(duration)
        target = self.allowed / needed if needed > 0 else inf
        self.z = min(1.0, max(self.floor, min(target, self._growth(work, duration) * self.z)))
        return self.z

    def _growth(self, work: float, duration: float) -> float:
        """The factor by which z may grow.

        Near the right z that is the boost; where batches leave much of their time, half of the way (in the
        logarithm). The fit may take work for fixed cost, so only what the shortest batch took counts as that.
        """
        self._shortest = min(duration, _LONGER * self._shortest) if self._shortest else duration
        spent = max(self.unit * work, duration - self._shortest)
        room = self.allowed * max(self.span, duration) / spent if spent > 0 else 1.0
        self._ahead = self._ahead + 1 if not self.is_late and room > _AHEAD else 0
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

    def _expected(self, needed: float) -> float:
        """The share of the time that all of the work may take in the next batch, if it grows as it did."""
        rise = needed / self._needed if self._needed > 0 else 1.0
        self._needed = needed
        return needed * min(rise, _STEEPEST) ** _SLOWING if rise > _STEADY else needed

    def _learn(self, work: float, duration: float) -> None:
        """Splits durations into fixed cost and work."""
        expected = self.fixed + self.unit * work
        if self.fixed > 0 and duration > _SLOW * expected and work > _USUAL * self._fit.work:
            # Slower by more than noise, and not for want of work.
            if self.unit > 0 and duration < _TOO_SLOW * expected and not self._stumbled:
                # Once is an accident, such as a garbage collection: it says nothing of the next batch.
                self._stumbled = True
                return
            # The batches before it were those of another machine, but for a batch without work.
            self._fit = _Fit()
            self._fit.add(0.0, self.fixed, self.memory)
        self._stumbled = False
        fit = self._fit
        fit.add(work, duration, self.memory)
        if fit.split():
            self.fixed, self.unit = fit.fixed, fit.unit
            return
        # The work hardly varied, so it says nothing about the split: only the unit follows. No batch is
        # shorter than the fixed cost, and one without work shows it.
        self.fixed = duration if work == 0 else min(self.fixed, duration)
        if work > 0:
            unit = (duration - self.fixed) / work
            self.unit = unit if self.unit == 0 else self.memory * self.unit + (1 - self.memory) * unit

    def _trust(self, work: float, engine: float) -> None:
        """The engine's clock: work costs that at most, and as much again for what comes after it."""
        if work > 0 and self.unit > _AFTERWARDS * engine / work:
            self.unit = _AFTERWARDS * engine / work
            self.fixed = max(self.fixed, self._fit.duration - self.unit * self._fit.work)


class _Fit:
    """Least squares for duration ≈ fixed + unit · work, both not negative; old batches count less.

    Errors count relative to the duration, so that short batches, which show the fixed cost, are not drowned
    out. While the work hardly varies, old batches are forgotten more slowly, so that a slow drift is enough
    to tell the two parts apart.

    Attributes:
        work: Weighted mean.
        duration: Weighted mean.
        fixed: Seconds, after a split.
        unit: Seconds per work unit, after a split.
    """

    __slots__ = ("_both", "_square", "_weight", "duration", "fixed", "unit", "work")

    def __init__(self) -> None:
        self._weight = self._square = self._both = 0.0
        self.work = self.duration = self.fixed = self.unit = 0.0

    def add(self, work: float, duration: float, memory: float) -> None:
        """Moves the weighted means, and the sums of squares around them, by one batch."""
        weight = 1.0 / max(duration, 1e-3) ** 2
        memory = memory if self.varied else memory**0.25
        self._weight = memory * self._weight + weight
        share = weight / self._weight
        apart, late = work - self.work, duration - self.duration
        self.work += share * apart
        self.duration += share * late
        self._square = (1 - share) * (self._square + share * apart * apart)
        self._both = (1 - share) * (self._both + share * apart * late)

    @property
    def varied(self) -> bool:
        """Whether the work varied enough to tell the two parts apart."""
        return self._square > 0 and sqrt(self._square) >= _SPREAD * self.work

    def split(self) -> bool:
        """Fits, if the work varied and more work took longer."""
        if not self.varied or self._both <= 0:
            return False
        self.unit = self._both / self._square
        self.fixed = self.duration - self.unit * self.work
        if self.fixed < 0:
            through_zero = self._square + self.work * self.work
            self.fixed, self.unit = 0.0, (self._both + self.work * self.duration) / through_zero
        return True


_LOST = 1.5  # work grows with the rows that probe and with those that are probed
_BOLDER = 2  # boosts at once, if it is known that there is room
_NEWS = 0.25  # weight of the last change in what is known of changes
_STEADY = 1.15  # a load that grows by less is taken to stay
_STEEPEST = 2.0  # and by more, for an accident
_SLOWING = (
    0.75  # windows that fill make work grow with a power of time: each step grows by less than the last
)
_LEAST_ALLOWED = 0.05  # share of the time that is left for work, however much waits
_AHEAD = 1.5  # batches whose work could be more by this factor leave room
_LONGER = 1.05  # the shortest batch is taken to become longer by this factor from batch to batch
_KEEPS_UP = 0.9  # a batch that takes longer than its input by less than this is one that keeps up
_SLOW = 1.5  # a batch that takes longer than expected by this factor does so for more than noise
_TOO_SLOW = 2.2  # and by this one, it is no accident
_USUAL = 0.5  # a batch with less than this share of the usual work says little of what work costs
_LONGEST = 4.0  # seconds that batches are planned for at most, or intervals, if these are longer than that
_AFTERWARDS = 2.0  # results are passed on, which takes as long as finding them, at most
_SPREAD = 0.2  # standard deviation of the work over its mean, below which the split is not fitted


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
