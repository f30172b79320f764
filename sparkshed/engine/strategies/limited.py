"""The join with a limit on what its windows hold, and no limit on its work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparkshed.engine.arrays import Ints
from sparkshed.engine.probing import EVERYTHING
from sparkshed.engine.strategies.evicting import Evicting
from sparkshed.engine.strategies.protocol import Part
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.configuration import Configuration


class Limited(Evicting):
    """Every row probes everything that is there."""

    def __init__(
        self, configuration: Configuration, buffering: Buffering, generator: np.random.Generator
    ) -> None:
        """Start with empty windows.

        Args:
            configuration: The orders.
            buffering: The limit, and who leaves.
            generator: Decides what is left to chance.
        """
        super().__init__(configuration, generator)
        self.buffering = buffering

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Every row probes everything."""
        self.tally.directions[origin].rows += self.stand_for(origin, rows)
        yield Part(rows, EVERYTHING, self.observe)
