"""Hill climbing on the length of segments."""

from __future__ import annotations

from typing import Any

#: A step changes the length by this factor.
STEP = 1.5
#: A length is better only if it is by this share.
_CLEARLY = 0.02


class Climber:
    """Finds the length of segments with the best performance, and goes on looking.

    Long segments need few copies, short ones spread the load evenly. A longer one is tried; while that is
    better, still longer ones are. Then shorter ones, likewise. So the length stays near the peak, and follows
    when it moves::

        performance        . * .
                        .        .
                     .              .
                   ──────────────────── length
                     ──▶ better, go on ──▶ worse, turn round
    """

    def __init__(self, length: float, least: float, most: float) -> None:
        """Start somewhere between the least and the most."""
        if not 0 < least <= length <= most:
            msg = f"the length must be between {least} and {most}, found {length}"
            raise ValueError(msg)
        self.length = length
        self._least, self._most = least, most
        self._last: float | None = None
        self._up = True

    def observe(self, performance: float) -> float:
        """Take in the performance with the present length; returns the length to try next."""
        if self._last is not None and performance < self._last * (1 + _CLEARLY):
            self._up = not self._up
        self._last = performance
        length = self.length * STEP if self._up else self.length / STEP
        length = min(self._most, max(self._least, length))
        if length == self.length:
            # At the end of the range: the other way round.
            self._up = not self._up
            length = self.length * STEP if self._up else self.length / STEP
            length = min(self._most, max(self._least, length))
        self.length = length
        return length

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {"length": self.length, "last": self._last, "up": self._up}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.length, self._last, self._up = notes["length"], notes["last"], notes["up"]
