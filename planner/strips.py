"""Which slices each hop of each direction harvests, for pictures of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.selecting import share_of

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Strip:
    """One hop of a direction.

    Attributes:
        path: Names of the streams that are joined when it is made, the probed one last.
        shares: For each slice, from the earliest partners to the latest, the share of rows that probe it.
        earliest: Where the first slice begins, in seconds from the probing row.
        latest: Where the last one ends.
    """

    path: tuple[str, ...]
    shares: tuple[float, ...]
    earliest: float
    latest: float

    @property
    def share(self) -> float:
        """The share of the window that is probed, on average."""
        return sum(self.shares) / len(self.shares) if self.shares else 1.0


def strips_of(configuration: Configuration, spec: JoinSpec, names: Sequence[str]) -> Iterator[Strip]:
    """The strips of all directions."""
    for origin in range(len(names)):
        yield from _direction(configuration, spec, names, origin)


def _direction(
    configuration: Configuration, spec: JoinSpec, names: Sequence[str], origin: int
) -> Iterator[Strip]:
    dear, cheap = configuration.dear[origin], configuration.cheap[origin]
    partly, path = configuration.partly[origin], [names[origin]]
    for place, target in enumerate(configuration.orders[origin]):
        slices = spec.slices[origin][target]
        everything = range(slices.first, slices.last + 1)
        some = everything if dear is None else dear[place]
        every = everything if cheap is None else cheap[place]
        part, share = (None, 0.0) if partly is None or place else share_of(slices, partly)
        shares = []
        for number in reversed(everything):
            probed = configuration.mix * (number in some) + (1 - configuration.mix) * (number in every)
            shares.append(round(min(1.0, probed + (share if number == part else 0.0)), 4))
        path.append(names[target])
        low, high = -slices.basic * (slices.last + 1), -slices.basic * slices.first
        yield Strip(tuple(path), tuple(shares), low / _SECOND, high / _SECOND)
