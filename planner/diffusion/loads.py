"""How busy hosts are, and how busy they will be with what was given to them since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: What CPU, memory and network count for.
IMPORTANCE = (0.6, 0.2, 0.2)


@dataclass(frozen=True, slots=True)
class Usage:
    """What is used of a host, each as a share of what it has."""

    cpu: float
    memory: float = 0.0
    bandwidth: float = 0.0

    def load(self, importance: Sequence[float] = IMPORTANCE) -> float:
        """The combined load `w = ω₁·cpu + ω₂·memory + ω₃·bandwidth`.

        >>> Usage(0.5, 1.0, 0.0).load((0.6, 0.2, 0.2))
        0.5
        """
        return sum(
            share * used
            for share, used in zip(importance, (self.cpu, self.memory, self.bandwidth), strict=True)
        )


class Loads:
    """The load of each host: what was measured last, and what it was given since then.

    A measurement is late: what was given to a host after it does not show in it yet, and without that all new
    work would go to the host that was least loaded a while ago. So each piece of work counts for what a piece
    cost on average when loads were measured::

        load  =  measured  +  given since  ×  Σ measured / pieces that were there

    Before the first measurement all hosts are equal, and pieces are counted.
    """

    def __init__(self, hosts: int) -> None:
        """Start with so many idle hosts."""
        self.measured = [0.0] * hosts
        self.given = [0.0] * hosts
        self._unit = 1.0

    def __len__(self) -> int:
        """How many hosts there are."""
        return len(self.measured)

    def measure(self, measured: Sequence[float], pieces: float) -> None:
        """Take in new loads, which are those of so many pieces of work."""
        if len(measured) != len(self.measured):
            msg = f"there are {len(self.measured)} hosts, and {len(measured)} loads were told"
            raise ValueError(msg)
        total = sum(measured)
        self.measured = list(measured)
        self.given = [0.0] * len(measured)
        self._unit = total / pieces if total > 0 and pieces > 0 else 1.0

    def of(self, host: int) -> float:
        """The load of a host as it will be."""
        return self.measured[host] + self._unit * self.given[host]

    def give(self, host: int, pieces: float) -> None:
        """A host gets more to do."""
        self.given[host] += pieces

    def least(self, among: Iterable[int] | None = None) -> int:
        """The host with the lowest load; of equal ones the first."""
        return min(range(len(self)) if among is None else among, key=lambda host: (self.of(host), host))

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        return {"measured": self.measured, "given": self.given, "unit": self._unit}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.measured, self.given = list(notes["measured"]), list(notes["given"])
        self._unit = notes["unit"]


def uneven(loads: Sequence[float]) -> float:
    """The coefficient of variation.

    >>> uneven([1.0, 1.0]), uneven([0.0, 2.0])
    (0.0, 1.0)
    """
    mean = sum(loads) / len(loads)
    spread = sum((load - mean) ** 2 for load in loads) / len(loads)
    return spread**0.5 / mean if mean > 0 else 0.0
