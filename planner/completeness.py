"""What share of the true answer is delivered: an unbiased estimate, with an interval.

Results that a strategy cannot see are counted on a sample. If every result is in the sample with a
known probability π, then each one found there stands for 1/π; the sum has the right expectation, and
its spread follows from how much single rows contribute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Standard deviations on each side of a 95 % interval.
_Z95 = 1.96
#: So many results may hide behind a sample that shows none, at 95 %.
_RULE_OF_THREE = 3.0


@dataclass(frozen=True, slots=True)
class Completeness:
    """Results delivered, and an estimate of how many were missed.

    Attributes:
        delivered: Results that were emitted, exactly.
        missed: Expected number of results that were not.
        variance: Of that estimate.
        weight: What one result of the sample stands for; the largest, where it differs.
    """

    delivered: float = 0.0
    missed: float = 0.0
    variance: float = 0.0
    weight: float = 0.0

    def __add__(self, other: Completeness) -> Completeness:
        """Both together; their samples are independent."""
        return Completeness(
            self.delivered + other.delivered,
            self.missed + other.missed,
            self.variance + other.variance,
            max(self.weight, other.weight),
        )

    @property
    def share(self) -> float:
        """The estimate of the delivered share; 1 if there was nothing to deliver.

        >>> Completeness(delivered=30, missed=10).share
        0.75
        """
        return _share(self.delivered, max(0.0, self.missed))

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval of the delivered share."""
        fewest, most = self._missed_interval()
        return _share(self.delivered, most), _share(self.delivered, fewest)

    def _missed_interval(self) -> tuple[float, float]:
        hidden = _RULE_OF_THREE * self.weight
        if self.missed <= 0 or self.variance <= 0:
            # Without a sample behind it, the number is not estimated but counted.
            counted = self.missed if self.weight <= 0 else 0.0
            return max(0.0, counted), max(0.0, self.missed) + hidden
        # Counts are skewed to the right and never negative, so the interval is one of the logarithm.
        deviation = math.sqrt(math.log1p(self.variance / self.missed**2))
        factor = math.exp(min(_Z95 * deviation, 50.0))
        return self.missed / factor, max(self.missed * factor, min(hidden, self.missed + hidden))


def _share(delivered: float, missed: float) -> float:
    return delivered / (delivered + missed) if delivered + missed > 0 else 1.0
