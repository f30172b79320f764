"""Strategies whose windows have a limit: nothing else limited, or their work as well."""

from __future__ import annotations

from collections.abc import Iterator

from sparkshed.engine.arrays import Ints
from sparkshed.engine.probing import EVERYTHING
from sparkshed.engine.strategies.adaptive import Adaptive
from sparkshed.engine.strategies.evicting import Evicting
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.strategies.randomdrop import RandomDrop


class Limited(Evicting):
    """Every row probes everything that is there."""

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Every row probes everything."""
        self.tally.directions[origin].rows += self.stand_for(origin, rows)
        yield Part(rows, EVERYTHING, self.observe)


class LimitedGrubJoin(Evicting, GrubJoin):
    """Rows probe what is worth it, of what is there; credit is for the results that they find."""

    harvests = True


class LimitedRandomDrop(Evicting, RandomDrop):
    """Some rows never enter, and some of the others leave."""


class LimitedAdaptive(Evicting, Adaptive):
    """Rows of two streams probe the best slices of what is there."""

    harvests = True
