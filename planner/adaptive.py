"""How `adaptive` adapts: how much each direction probes of its window, and which slices of it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkshed.planner.adaptation import WORTH_A_CHANGE, Orders
from sparkshed.planner.configuration import Configuration, Harvest
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvest.model import DirectionModel, JoinModel
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.harvesting import HarvestAdapter
from sparkshed.planner.selecting import Selection, part_of, ranked, select, share_of
from sparkshed.planner.slices import Slices, Span

AllSlices = Sequence[Sequence[Slices]]


class AdaptiveAdapter(HarvestAdapter):
    """Chooses r_1 and r_2, and what rows that select probe for them.

    Some rows, a share r · γ_s, are processed fully. The budget is a share r of all work, so the others may do
    a little less than that::

        r · C  =  r·γ_s · C  +  (1 - r·γ_s) · (r_2·C_1 + r_1·C_2)

    C_i is the work of rows of stream i when they probe everything, with their searches. They probe the other
    window, of which r says how much; for nested loops this is the paper's r_1·w_1 + r_2·w_2 = r·(w_1 + w_2).

    Attributes:
        shares: What rows of each stream do of their work after the last choice: r_2 and r_1.
    """

    shares: tuple[float, ...] = (1.0, 1.0)

    def _orders(self, tally: Tally, throttle: float) -> Orders:
        return self.configuration.orders

    def _choose(self, learned: Learned, orders: Orders, throttle: float) -> Configuration:
        shred = throttle * self._policy.shred
        model, costs = learned.model, self._corrected(learned.model)
        left = max(0.0, self._allowed(model, throttle) - shred * model.full_cost)
        budget = left / (1 - shred) if shred < 1 else 0.0
        self.shares = self._shares(learned, [own.full_cost for own in costs.directions], budget)
        selections = [
            self._select(learned, origin, own, share)
            for origin, (own, share) in enumerate(zip(costs.directions, self.shares, strict=True))
        ]
        return Configuration(
            orders,
            throttle,
            dear=tuple(self._harvest(learned, i, (*s.whole, *s.some)) for i, s in enumerate(selections)),
            cheap=tuple(self._harvest(learned, i, s.whole) for i, s in enumerate(selections)),
            mix=_mix(costs, selections),
            shred=shred,
            thins=((1.0,),) * len(orders),
            partly=tuple(self._part(learned, i, s) for i, s in enumerate(selections)),
        )

    def _select(self, learned: Learned, origin: int, direction: DirectionModel, share: float) -> Selection:
        (hop,), (numbers,) = direction.hops, learned.numbers[origin]
        order = ranked(hop, numbers, learned="time" in self._policy.adaptations)
        if share >= 1:
            return Selection(tuple(order))
        window = self._window(origin)
        endless = [place for place, number in enumerate(numbers) if window.span(number) is None]
        return select(hop, order, share * direction.full_cost / direction.rate, endless)

    def _part(self, learned: Learned, origin: int, selection: Selection) -> Span | None:
        (numbers,) = learned.numbers[origin]
        if selection.part is None:
            return None
        chosen = [numbers[place] for place in selection.whole]
        return part_of(self._window(origin), numbers[selection.part], selection.share, chosen)

    def _shares(self, learned: Learned, full: Sequence[float], budget: float) -> tuple[float, ...]:
        """Shares of both directions: alike, or as much as possible for one that finds more for its work.

        That any part of its window is better than all parts of the other one is an assumption, so the
        direction must be clearly better.
        """
        worth = [_worth(direction) for direction in learned.model.directions]
        if "direction" not in self._policy.adaptations or min(worth) >= WORTH_A_CHANGE * max(worth):
            return (min(1.0, budget / max(sum(full), 1e-12)),) * len(full)
        shares = [0.0] * len(full)
        for origin in sorted(range(len(full)), key=lambda i: -worth[i]):
            shares[origin] = min(1.0, budget / full[origin]) if full[origin] > 0 else 1.0
            budget = max(0.0, budget - shares[origin] * full[origin])
        return tuple(shares)

    def _window(self, origin: int) -> Slices:
        return self._slices[origin][1 - origin]

    def _harvest(self, learned: Learned, origin: int, places: Sequence[int]) -> Harvest:
        return learned.harvest(origin, (tuple(sorted(places)),), [self._window(origin)])

    def _probe_cost(self, learned: Learned, origin: int, harvest: Harvest) -> float:
        return probed(learned, self.configuration, origin, harvest, self._window(origin))[0]


def _mix(model: JoinModel, selections: Sequence[Selection]) -> float:
    """One share of rows for both directions, for which the slices of some rows cost the same as with two."""
    extra = [
        own.rate * selection.extra(own.hops[0])
        for own, selection in zip(model.directions, selections, strict=True)
    ]
    allowed = sum(work * own.chance for work, own in zip(extra, selections, strict=True))
    return min(1.0, allowed / sum(extra)) if sum(extra) > 0 else 1.0


def _worth(direction: DirectionModel) -> float:
    """o_i, results per unit of work."""
    return direction.rate * direction.results / max(direction.full_cost, 1e-12)


def probed(
    learned: Learned, configuration: Configuration, origin: int, harvest: Harvest, slices: Slices
) -> tuple[float, float]:
    """Work units of a row that selects, and the share of its results that it finds."""
    hop, part = learned.model.directions[origin].hops[0], configuration.partly[origin]
    shares = dict.fromkeys(learned.places(origin, harvest)[0], 1.0)
    if part is not None:
        number, share = share_of(slices, part)
        if number in learned.numbers[origin][0]:
            shares[learned.numbers[origin][0].index(number)] = share
    work = sum(share * hop.cost[k] for k, share in shares.items()) + (hop.base if shares else 0.0)
    return work, sum(share * hop.share[k] for k, share in shares.items())


def selective(
    configuration: Configuration, learned: Learned, origin: int, slices: AllSlices
) -> tuple[float, float]:
    """The shares of work and of results of rows of a stream that select."""
    model, window = learned.model.directions[origin], slices[origin][1 - origin]
    full, mix = model.full_cost / model.rate, configuration.mix
    work = found = 0.0
    for harvest, share in ((configuration.dear[origin], mix), (configuration.cheap[origin], 1 - mix)):
        own_work, own_found = probed(learned, configuration, origin, harvest, window)
        work += share * (own_work / full if full else 1.0)
        found += share * own_found
    return work, found
