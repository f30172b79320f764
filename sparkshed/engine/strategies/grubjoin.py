"""GrubJoin: rows probe the slices of the windows in which results are most likely."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import EVERYTHING, Probing, Reach, reaches_of
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.watching import DirectionWatch, HarvestWatch, weights_of
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Harvest, harvested
from sparkshed.planner.slices import Slices


class GrubJoin(Learning):
    """Window harvesting, with shredded rows to learn from.

    The new rows of a stream are of three kinds::

        share ω            shredded: see a share of every window, so thin that z of the results are left
        (1 - ω) · mix      join the slices of the dearer setting
        (1 - ω)(1 - mix)   join the slices of the cheaper one

    The results of all of them are emitted. Those of shredded rows are a sample without bias of all
    results, so they tell where results are, what they cost, and how many are missed.
    """

    def reaches(self, origin: int) -> Mapping[int, Sequence[Reach]]:
        """The slices that are harvested; everything in time where rows may be shredded."""
        chosen = harvested(self.configuration, origin)
        if chosen is None:
            return super().reaches(origin)
        order, slices = self.configuration.orders[origin], self.slices_of(origin)
        return dict(zip(order, map(reaches_of, slices, chosen), strict=True))

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Shredded rows first, then those that harvest."""
        configuration = self.configuration
        self.tally.directions[origin].rows += self.stand_for(origin, rows)
        draws = self.generator.random(len(rows))
        shredded = rows[draws < configuration.shred]
        rest = rows[draws >= configuration.shred]
        if len(shredded):
            yield from self._shred(origin, shredded)
        dear, cheap = configuration.dear[origin], configuration.cheap[origin]
        if dear == cheap:
            yield from self._harvest(origin, rest, dear, 0)
            return
        chosen = self.generator.random(len(rest)) < configuration.mix
        yield from self._harvest(origin, rest[chosen], dear, 0)
        yield from self._harvest(origin, rest[~chosen], cheap, 1)

    def _harvest(self, origin: int, rows: Ints, harvest: Harvest, kind: int) -> Iterator[Part]:
        if not len(rows) or (harvest is not None and not all(harvest)):
            return
        if harvest is None:
            yield Part(rows, EVERYTHING, self.deliver)
            return
        watch = HarvestWatch(self.tally.directions[origin].harvested[kind])
        yield Part(rows, Probing.harvest(self.slices_of(origin), harvest, watch), self.deliver)

    def _shred(self, origin: int, rows: Ints) -> Iterator[Part]:
        configuration = self.configuration
        full = configuration.dear[origin] is None and configuration.cheap[origin] is None
        thins = (1.0,) * len(configuration.orders[origin]) if full else configuration.thins[origin]
        sifts = not full and configuration.sifts[origin]
        watch = self.watch(origin, rows, thins, sifts=sifts)
        shred = _Shred(self, origin, rows, watch, thins)
        before = self._first_partials(origin) if sifts else 0.0
        yield Part(rows, Probing(thins=thins, watch=watch, sifts=sifts), shred.observe)
        if sifts:
            found = self._first_partials(origin) - before
            self.tally.directions[origin].sifted += (1 - thins[0]) * found
        if not full or any(store.weights is not None for store in self.stores):
            self.missed(shred.completeness())
        yield from self.explore(origin, rows, 1.0 if full else configuration.tries[origin])

    def _first_partials(self, origin: int) -> float:
        """Partial results that shredded rows found in the first window of their order."""
        key = (frozenset([origin]), self.configuration.orders[origin][0])
        own = self.tally.directions[origin].hops.get(key)
        return 0.0 if own is None else float(own.partials.sum())


class _Shred:
    """Results of the shredded rows of one stream in one micro-batch.

    Shredded rows see so little of the windows that a share z of their results is left, and rows of a
    window may stand for others that were dropped, so a result stands for w/z results of shredded rows; one
    of them is emitted. The other rows have (1 - ω)/ω times as many, of which they miss w less the
    chance c that they probe its slices::

        missed  =  ((w - c) · (1 - ω)/ω + w) / z  -  1
    """

    def __init__(
        self, grub: GrubJoin, origin: int, rows: Ints, watch: DirectionWatch, thins: Sequence[float]
    ) -> None:
        configuration = grub.configuration
        self._origin = origin
        self._order = configuration.orders[origin]
        self._first = int(rows[0])
        self._missing: Floats = np.zeros(int(rows[-1]) - self._first + 1)
        self._mixing: Floats = np.zeros(len(self._missing))
        self._watch = watch
        self._thins, self._found = thins, math.prod(thins)
        self._shred, self._mix = configuration.shred, configuration.mix
        slices = grub.slices_of(origin)
        self._dear = _masks(slices, configuration.dear[origin])
        self._cheap = _masks(slices, configuration.cheap[origin])
        self._stores, self._ledgers = grub.stores, grub.ledgers
        self._deliver = grub.deliver
        self._missed = 0.0
        self._weight = 1.0

    def observe(self, results: Partials | Candidates) -> None:
        """Learn from results, and find out what the others miss."""
        self._deliver(results)
        rows = [results.rows_of(target) for target in self._order]
        weights = weights_of(self._stores, results, (self._origin, *self._order))
        places = self._watch.results(results, rows, weights)
        if self._dear is None and self._cheap is None and weights.max(initial=1.0) <= 1:
            return
        dear, cheap = _covered(self._dear, places), _covered(self._cheap, places)
        unseen = weights - self._mix * dear - (1.0 - self._mix) * cheap
        own = results.rows_of(self._origin) - self._first
        self._missing += np.bincount(own, unseen, len(self._missing))
        self._mixing += np.bincount(own, dear - cheap, len(self._missing))
        amounts = (unseen * (1 - self._shred) / self._shred + weights) / self._found - 1.0
        self._missed += float(amounts.sum())
        self._weight = max(self._weight, float(weights.max()))
        for target, found, thin in zip(self._order, rows, self._thins, strict=True):
            own_weights = self._stores[target].weights
            chance = thin if own_weights is None else thin / own_weights.take(found)
            if own_weights is not None or thin < 1:
                self._ledgers[target].add(found, amounts * np.sqrt(1.0 - chance))

    def completeness(self) -> Completeness:
        """Results that are missed, and how sure that is as far as it depends on which rows were shredded."""
        scale = (1 - self._shred) / self._shred
        rows = float((self._missing**2).sum()) * scale / self._shred
        mixing = float((self._mixing**2).sum()) * scale * self._mix * (1 - self._mix)
        weight = (scale + 1) * self._weight / self._found - 1.0
        return Completeness(0.0, self._missed, (rows + mixing) / self._found**2, weight)


def _masks(slices: Sequence[Slices], harvest: Harvest) -> list[Floats] | None:
    """For each hop, 1 where a slice is probed; None if all are."""
    if harvest is None:
        return None
    masks = []
    for own, chosen in zip(slices, harvest, strict=True):
        mask = np.zeros(own.count)
        mask[[number - own.first for number in chosen]] = 1.0
        masks.append(mask)
    return masks


def _covered(masks: list[Floats] | None, places: Sequence[Ints]) -> Floats:
    """1 for results that a harvest finds."""
    covered: Floats = np.ones(len(places[0]))
    for mask, found in zip(masks or (), places, strict=False):
        covered *= mask.take(found)
    return covered
