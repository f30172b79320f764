"""Adaptive: rows of two streams probe their best slices first, and the last one of them in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkshed.engine.probing import Reach
from sparkshed.engine.strategies.coverage import Coverage
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.planner.configuration import Harvest


class Adaptive(GrubJoin):
    """Selective processing of a join of two streams.

    The new rows of a stream are of two kinds::

        share r · γ_s      processed fully: probe all of the window, and teach which slices are worth it
        the others         processed selectively: probe slices in rank order until r_i is used up

        W_l    │.......│.......│#######│#######│..#####│.......│      rank 1 and 2 whole, rank 3 in part
               older                                     newest

    Full processing is GrubJoin's shredding of a window that is not thinned. The part of a slice is a range
    of time, so it is known of each result whether rows that select find it.
    """

    def reaches(self, origin: int) -> Mapping[int, Sequence[Reach]]:
        """The slices that are selected, and the part of one more."""
        found, part = dict(super().reaches(origin)), self.configuration.partly[origin]
        if part is not None:
            (target,) = self.configuration.orders[origin]
            found[target] = [*found[target], Reach(part.stop - 1, -part.start)]
        return found

    def coverage(self, origin: int, harvest: Harvest) -> Coverage:
        """What rows that select probe."""
        return Coverage(self.slices_of(origin), harvest, self.configuration.partly[origin])
