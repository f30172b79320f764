"""How RandomDrop adapts: the share of each stream that enters the join."""

from __future__ import annotations

from sparkshed.planner.adaptation import Adapter, Orders
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import DirectionModel
from sparkshed.planner.randomdrop import DropDirection, DropHop, full_work, keep_fractions

#: A stream is never dropped altogether, or nothing more would be learned of it.
_LEAST_KEPT = 1e-3


class DropAdapter(Adapter):
    """Chooses how much of each stream RandomDrop keeps.

    Rows that are kept stand for those that are not, so the model is one of the join without drops.
    """

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        directions = []
        for order, model in zip(orders, learned.model.directions, strict=True):
            hops = [
                DropHop(target, hop.base + sum(hop.cost), sum(hop.partials))
                for target, hop in zip(order, model.hops, strict=True)
            ]
            directions.append(DropDirection(model.rate, tuple(hops)))
        # The model's last hop pays for results already.
        budget = throttle * full_work(directions)
        keep = tuple(max(_LEAST_KEPT, share) for share in keep_fractions(directions, budget, output_cost=0.0))
        return Configuration(orders, throttle, shred=self._policy.shred, keep=keep)

    def _row_cost(self, learned: Learned, origin: int, direction: DirectionModel) -> tuple[float, float]:
        # Windows remember what was kept before, so the cost of single intervals says little.
        return 0.0, 0.0
