"""Hill climbing on the length of segments."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Any

#: A step changes the length by this factor.
STEP = 1.5
#: What a trial counts for when there was another one since; what counts for less than the least is gone.
_KEPT, _LEAST = 0.85, 0.02
#: A length is better only if it is by this share.
_CLEARLY = 0.02
#: A length with less than this share of the best performance is left alone until that is forgotten.
_WORSE = 0.9
#: Lengths so many steps from the best one are tried, too.
_NEAR = 3
#: Trials of the best length for one of another: how many more after each that was in vain, and at most.
_CALMER, _CALMEST = 0.5, 8.0


@dataclass(slots=True)
class _Seen:
    """What is known of a length: the mean of its performance, and what that counts for."""

    mean: float
    weight: float


class Climber:
    """Finds the length of segments with the best performance, and goes on looking.

    Long segments need few copies, short ones spread the load evenly. At first every second trial is of the
    best length so far, and the others are of longer and shorter ones, in turn. Where one of these turns out
    to be better, it is the best from then on; while none does, they are tried more and more seldom. So the
    length stays near the peak, and follows when it moves::

        performance        . * .
                        .        .
                     .              .
                   ──────────────────── length
                       ◀─ shorter, best, longer ─▶

    Streams differ from one time to the next, so what was seen of a length is averaged over all of its trials,
    and counts for less as time goes by. When the best one is not any more what it was, others are tried often
    again.
    """

    def __init__(self, length: int, least: int, most: int) -> None:
        """Start somewhere between the least and the most; lengths are whole."""
        if not 0 < least <= length <= most:
            msg = f"the length must be between {least} and {most}, found {length}"
            raise ValueError(msg)
        steps = range(-ceil(log(length / least, STEP)), ceil(log(most / length, STEP)) + 1)
        # Short ones are closer to each other than a step.
        self._lengths = sorted({min(most, max(least, round(length * STEP**step))) for step in steps})
        self._place = self._lengths.index(length)
        self._known: dict[int, _Seen] = {}
        #: When each was tried last; what it was like may be forgotten since.
        self._tried: dict[int, int] = {}
        self._time = 0
        self._best, self._stayed, self._patience = self._place, 0, 1.0

    @property
    def length(self) -> int:
        """The present length."""
        return self._lengths[self._place]

    def observe(self, performance: float) -> int:
        """Take in the performance with the present length; returns the length to try next."""
        self._time += 1
        for own in self._known.values():
            own.weight *= _KEPT
        seen = self._known.setdefault(self._place, _Seen(performance, 0.0))
        if self._place == self._best and performance < _WORSE * seen.mean:
            self._patience = 1.0
        seen.weight += 1
        seen.mean += (performance - seen.mean) / seen.weight
        self._tried[self._place] = self._time
        self._known = {place: own for place, own in self._known.items() if own.weight >= _LEAST}
        best = max(self._known, key=lambda place: self._known[place].mean)
        present = self._known.get(self._best)
        if present is None or self._known[best].mean > present.mean * (1 + _CLEARLY):
            self._best, self._patience = best, 1.0
        best = self._best
        self._stayed = self._stayed + 1 if self._place == best else 0
        self._place = best
        if self._stayed >= self._patience:
            self._place = self._another(best)
            self._patience = min(_CALMEST, self._patience + _CALMER)
        return self.length

    def _another(self, best: int) -> int:
        """The length near the best one that was not tried for longest, and of these the nearest."""
        least = _WORSE * self._known[best].mean
        tried = {
            place: self._tried.get(place, 0)
            for place in range(max(0, best - _NEAR), min(len(self._lengths), best + _NEAR + 1))
            if place != best and (place not in self._known or self._known[place].mean > least)
        }
        return min(tried, key=lambda place: (tried[place], abs(place - best), -place), default=best)

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {
            "place": self._place,
            "known": [[place, own.mean, own.weight] for place, own in self._known.items()],
            "tried": list(self._tried.items()),
            "time": self._time,
            "best": [self._best, self._stayed, self._patience],
        }

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self._place, self._time = notes["place"], notes["time"]
        self._best, self._stayed, self._patience = notes["best"]
        # Checkpoints may have been written when the time of a trial was noted with its mean.
        self._known = {place: _Seen(mean, weight) for place, mean, weight, *_ in notes["known"]}
        self._tried = {place: time for place, time in notes.get("tried", ())}
