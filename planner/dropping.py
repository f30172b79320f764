"""How RandomDrop adapts: the share of each stream that enters the join."""

from __future__ import annotations

from collections.abc import Sequence

from sparkshed.planner.adaptation import Adapter, Orders
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.tally import DirectionTally, Tally
from sparkshed.planner.randomdrop import DropDirection, DropHop, full_work, keep_fractions

#: A stream is never dropped altogether, or nothing more would be learned of it.
_LEAST_KEPT = 1e-3
#: What a row costs is known from about so many that were kept.
_LAST_KEPT = 64.0


class DropAdapter(Adapter):
    """Chooses how much of each stream RandomDrop keeps.

    Rows that are kept stand for those that are not, so the model is one of the join without drops. The best
    shares are those of a join that has had them for as long as its windows are. Until then windows hold what
    was kept before, and a row that is kept costs what it meets there::

        asked for      z · C(1)                 by the shares of all streams, in the long run
        next interval  Σ x_i · (rows of S_i) · (what a row of S_i costs now)

    If that is more than was asked for, less of every stream is kept meanwhile.
    """

    lags = True

    def _begin(self) -> None:
        # Work of the last rows of each stream that were kept, and how many that were.
        self._paid = [[0.0, 0.0] for _ in self.configuration.orders]

    def _found(self, interval: Tally) -> None:
        for paid, direction, keep in zip(
            self._paid, interval.directions, self.configuration.keep, strict=True
        ):
            faded = min(1.0, _LAST_KEPT / paid[1]) if paid[1] > 0 else 1.0
            paid[0] = faded * paid[0] + direction.work
            paid[1] = faded * paid[1] + direction.rows * keep

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        directions = []
        for order, model in zip(orders, learned.model.directions, strict=True):
            hops = [
                DropHop(target, hop.base + sum(hop.cost), sum(hop.partials))
                for target, hop in zip(order, model.hops, strict=True)
            ]
            directions.append(DropDirection(model.rate, tuple(hops)))
        # The model's last hop pays for results already.
        capacity = throttle * full_work(directions)
        now = self._now(directions, self.configuration.keep)
        if self._policy.follows and now > 0:
            # z is the factor by which the work should change, however wrong the idea of the full work is.
            capacity = self._ratio * now
        keep = keep_fractions(directions, capacity, output_cost=0.0)
        if self._policy.follows:
            soon = self._now(directions, keep)
            keep = tuple(share * min(1.0, capacity / soon) if soon > 0 else share for share in keep)
        keep = tuple(max(_LEAST_KEPT, share) for share in keep)
        if self._policy.follows and capacity > 0:
            # What it comes to may be more, as something of each stream is kept, or less, while windows fill.
            throttle = min(1.0, throttle * self._now(directions, keep) / capacity) or throttle
        return Configuration(orders, throttle, shred=self._policy.shred, keep=keep)

    def _now(self, directions: Sequence[DropDirection], keep: Sequence[float]) -> float:
        """Work units per second with the windows as they are."""
        return sum(
            direction.rate * share * work / rows
            for direction, share, (work, rows) in zip(directions, keep, self._paid, strict=True)
            if rows > 0
        )

    def _row_cost(self, learned: Learned, origin: int, counted: DirectionTally) -> tuple[float, float]:
        # Windows remember what was kept before, so the cost of single intervals says little.
        return 0.0, 0.0
