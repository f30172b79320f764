"""Keeping to a budget while an interval runs.

Slices are chosen by what is expected of them, and the choice stays for an interval. What it really costs
shows within the interval, so the share of rows with the dearer setting follows that::

    level   0        cheap    dear                    whole
            |----------|--------|-----------------------|
            some rows  both     some rows probe
            probe      mixed    everything
            nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: The share of an interval's work over which an error is made up for.
_HORIZON = 0.25
#: The share of an interval's work that it may be off where only rows that probe nothing, or everything, could
#: mend that: the next intervals make up for it. The former lose more results than the latter gain.
_LEFT_ALONE = 0.1
#: How far the work may be from the planned one for that.
_LEAST, _MOST = 0.2, 3.0

#: What rows may do: the setting of the configuration, or one beyond both.
NOTHING, CHEAP, DEAR, WHOLE = -1, 1, 0, 2


class Mix(NamedTuple):
    """A share of the rows does one thing, and the others another one."""

    more: int
    less: int
    share: float


@dataclass(frozen=True, slots=True)
class Pace:
    """What rows may cost. Levels are work units over those that are planned for a row.

    Attributes:
        promised: Work units of a row of each stream, on average of all rows.
        interval: Work units that are planned for the interval.
        taught: Level of what learning takes.
        cheap: Level of the cheaper setting.
        dear: Level of the dearer one.
        whole: Level of rows that probe everything.
    """

    promised: tuple[float, ...]
    interval: float
    taught: float
    cheap: float
    dear: float
    whole: float

    def mix(self, level: float) -> Mix:
        """What rows do for a level, learning not included.

        >>> pace = Pace((10.0,), 1000.0, 0.0, cheap=0.5, dear=1.5, whole=3.0)
        >>> pace.mix(1.0), pace.mix(0.25), pace.mix(2.25)
        (Mix(more=0, less=1, share=0.5), Mix(more=1, less=-1, share=0.5), Mix(more=2, less=0, share=0.5))
        """
        if level < self.cheap:
            return Mix(CHEAP, NOTHING, max(0.0, level) / self.cheap)
        if level < self.dear:
            return Mix(DEAR, CHEAP, (level - self.cheap) / (self.dear - self.cheap))
        if self.whole <= self.dear:
            return Mix(DEAR, CHEAP, 1.0)
        return Mix(WHOLE, DEAR, min(1.0, (level - self.dear) / (self.whole - self.dear)))


class Governor:
    """Follows what an interval costs, and says what the next rows do.

    >>> pace = Pace((10.0,), 1000.0, 0.0, cheap=0.5, dear=1.5, whole=3.0)
    >>> governor = Governor(pace, 1.0)
    >>> governor.add(0, 20, 200.0)
    >>> governor.follow()
    1.0
    >>> governor.add(0, 20, 400.0)
    >>> round(governor.follow(), 2)
    0.46
    """

    def __init__(self, pace: Pace, level: float) -> None:
        """Start with the level that is planned, without what learning takes."""
        self._pace = pace
        self._left_alone = _LEFT_ALONE * pace.interval
        self._horizon = max(_HORIZON * pace.interval, 1e-9)
        self.level = level
        self._allowed = self._spent = self._expected = 0.0

    def add(self, stream: int, rows: float, work: float) -> None:
        """Rows of a stream were joined, and took so much work."""
        allowed = rows * self._pace.promised[stream]
        self._allowed += allowed
        self._expected += allowed * (self._pace.taught + self.level)
        self._spent += work

    def follow(self) -> float:
        """The level of the next rows.

        Slices may be chosen for one stream and none for another, so what rows of one stream cost, over what
        is promised for them, says nothing: this is for when rows of all streams were joined.
        """
        pace = self._pace
        left = self._allowed - self._spent
        mixed = min(max(self._wanted(left), pace.cheap), pace.dear)
        beyond = max(0.0, left - self._left_alone) + min(0.0, left + self._left_alone)
        wanted = self._wanted(beyond) if beyond else mixed
        self.level = mixed if pace.cheap <= wanted <= pace.dear else wanted
        return self.level

    def _wanted(self, left: float) -> float:
        """The level that makes up for what is left of the work, or for what is owed."""
        # How much more rows cost than they should, as far as that is known.
        dear = (self._spent + self._horizon) / (self._expected + self._horizon)
        factor = min(max(1 + left / self._horizon, _LEAST), _MOST)
        return min(max(0.0, factor / dear - self._pace.taught), self._pace.whole)
