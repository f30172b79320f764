"""How far a micro-batch is, and how much effort is left for the rest of it.

Where z follows the load, the driver decides after micro-batches. A batch may turn out to be far more work
than the driver knew of: the first one, one with all the input that waited, one in which windows fill. A host
that finds out sheds more for the rest of the batch: nobody would learn anything before its end. Effort is
counted, not timed, so that it does not depend on what else the machine does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import mul

from sparkshed.engine.statistics import Statistics

#: Effort of a batch beyond which a host sheds before there was a decision: some seconds of comparisons, each
#: of which counts as one.
ENOUGH = 5e8
#: Effort of one result on its way out: about 130 ns through both Python workers and the JVM, where a
#: comparison takes little more than one.
_RESULT = 100
#: The share of the limit that rows have which come after it was spent, so that something is learned of them.
_AFTER = 0.05
#: A batch may take so much more than its limit before it is cut, and more than that as long as little of it
#: is known.
_TOLERATED, _UNSURE = 1.1, 0.5
#: A share of the work as far from the right one as this is right enough.
_CLOSE = 0.75
#: What rows of the last batch cost counts as much as this share of the rows of this one.
_KNOWN = 1 / 16
#: Rows that cost less than this share of what there is time for are taken to cost, with all of the work, so
#: many times what those of the last batch did at most.
_LITTLE, _GROWN = 0.25, 4.0
#: The share of the work grows by this factor at most from one portion to the next.
_BOLDEST = 4.0


def efforts_of(counted: Statistics) -> list[float]:
    """What the work and the results of each direction cost, in comparisons."""
    return [float(own.work + (_RESULT - 1) * own.results) for own in counted.directions]


class Progress:
    """How far a micro-batch is, in rows and in effort.

    Rows of one stream may cost a thousand times as much as those of another one, and a host may get all of
    them in a few moments of the batch. So what is left is counted by stream.
    """

    def __init__(self, rows: Sequence[int], limit: float, known: Sequence[float], *, filling: bool) -> None:
        """Start with nothing done.

        Args:
            rows: Rows of the batch, by stream.
            limit: Effort that it may take.
            known: What a row of each stream cost in the last batch, with all of the work; empty before there
                was one.
            filling: Whether windows were empty before it.
        """
        self._rows = rows
        self._limit = limit
        self._known = known
        self._filling = filling
        self._done = [0] * len(rows)
        self._full = [0.0] * len(rows)
        self._spent = 0.0

    def add(self, rows: Sequence[int], efforts: Sequence[float], throttle: float) -> None:
        """A portion was joined, with a share of the work."""
        # A tiny share of the work still costs what learning costs. Where that is little beside what there is
        # time for, it says nothing of the whole.
        allowed = self._limit * sum(rows) / max(1, sum(self._rows))
        vague = any(self._known) and sum(efforts) < _LITTLE * allowed < inf
        for stream, (count, effort) in enumerate(zip(rows, efforts, strict=True)):
            most = _GROWN * self._known[stream] * count if vague else inf
            self._done[stream] += count
            self._full[stream] += min(effort / throttle, most)
            self._spent += effort

    def expected(self, throttle: float) -> float | None:
        """The share of the limit that the batch will take, if rows cost what those of the last batch did."""
        if not any(self._rows):
            return 0.0
        if not any(self._known) or self._limit <= 0:
            return None
        cost = float(sum(map(mul, self._rows, self._known)))
        return throttle * cost / self._limit

    @property
    def is_over(self) -> bool:
        """Whether all rows were joined."""
        return not any(self.left)

    @property
    def left(self) -> list[int]:
        """Rows of each stream that were not joined yet."""
        return [count - done for count, done in zip(self._rows, self._done, strict=True)]

    @property
    def to_come(self) -> list[int]:
        """Rows of each stream to plan for: those that are left, or else as many as there were."""
        return [left or count for left, count in zip(self.left, self._rows, strict=True)]

    @property
    def per_row(self) -> list[float]:
        """What a row of each stream cost, or would have cost with all of the work; empty if nobody knows."""
        if not self._known and not any(self._done):
            return []
        mean = sum(self._full) / max(1, sum(self._done))
        known = self._known or [mean] * len(self._rows)
        weights = [max(1.0, count * _KNOWN) for count in self._rows]
        return [
            (full + weight * cost) / (done + weight)
            for full, done, weight, cost in zip(self._full, self._done, weights, known, strict=True)
        ]

    @property
    def _part(self) -> float:
        return sum(self._done) / max(1, sum(self._rows))

    @property
    def _rest(self) -> float:
        """Effort that the other rows would take with all of the work."""
        rest = sum(count * cost for count, cost in zip(self.left, self.per_row, strict=True))
        # While windows fill, later rows meet more of them.
        return rest * (1 + 1 / self._part) if self._filling else rest

    def budget(self, throttle: float) -> float:
        """The share of the work that the rest of the batch may have, where it had this one."""
        left = max(self._limit - self._spent, _AFTER * (1 - self._part) * self._limit)
        return min(1.0, _BOLDEST * throttle, left / self._rest if self._rest > 0 else 1.0)

    def is_too_much(self, throttle: float) -> bool:
        """Whether the batch would take too much effort with this share of the work for the rest."""
        tolerated = _TOLERATED + _UNSURE * (1 - self._part)
        return self._spent + throttle * self._rest > tolerated * self._limit

    @staticmethod
    def is_close(throttle: float, budget: float) -> bool:
        """Whether another share of the work would change little."""
        return _CLOSE * budget <= throttle <= budget / _CLOSE

    @property
    def share(self) -> float:
        """The share of the work that was done."""
        full = sum(self._full)
        return min(1.0, self._spent / full) if full > 0 else 1.0
