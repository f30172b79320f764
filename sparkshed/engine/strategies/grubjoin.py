"""GrubJoin: rows probe the slices of the windows in which results are most likely."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import Probing, Reach, reaches_of
from sparkshed.engine.strategies.coverage import Coverage
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.watching import DirectionWatch, HarvestWatch, weights_of
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration, Harvest, harvested
from sparkshed.planner.pace import CHEAP, DEAR, WHOLE, Governor, Mix


class GrubJoin(Learning):
    """Window harvesting, with shredded rows to learn from.

    The new rows of a stream are of three kinds::

        share ω            shredded: see a share of every window, so thin that z of the results are left
        (1 - ω) · mix      join the slices of the dearer setting
        (1 - ω)(1 - mix)   join the slices of the cheaper one

    The results of all of them are emitted. Those of shredded rows are a sample without bias of all
    results, so they tell where results are, what they cost, and how many are missed.

    Where a share of the work is promised, the share of rows with each setting follows what they turn out to
    cost, and some rows probe everything, or nothing, if both settings are too cheap, or too dear.
    """

    _governor: Governor | None = None

    def configure(self, configuration: Configuration) -> None:
        """Follow a new configuration from the next micro-batch on."""
        if configuration != self.configuration:
            self._governor = None
        super().configure(configuration)

    def spent(self, origin: int, work: int) -> None:
        """What the rows of a stream cost, for which the next ones may have to make up."""
        super().spent(origin, work)
        if self._governor is not None:
            self._governor.add(origin, self._joined, work)

    def settle(self) -> Completeness:
        """What share was delivered; the next rows make up for what these cost."""
        if self._governor is not None:
            self._governor.follow()
        return super().settle()

    def reaches(self, origin: int) -> Mapping[int, Sequence[Reach]]:
        """The slices that are harvested; everything in time where rows may be shredded."""
        chosen = harvested(self.configuration, origin)
        if chosen is None or self.configuration.pace is not None:
            return super().reaches(origin)
        order, slices = self.configuration.orders[origin], self.slices_of(origin)
        return dict(zip(order, map(reaches_of, slices, chosen), strict=True))

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Shredded rows first, then those that harvest."""
        configuration, mix = self.configuration, self._mix()
        self._joined = self.stand_for(origin, rows)
        self.tally.directions[origin].rows += self._joined
        draws = self.generator.random(len(rows))
        shredded = rows[draws < configuration.shred]
        rest = rows[draws >= configuration.shred]
        if len(shredded):
            yield from self._shred(origin, shredded, mix)
        if self._setting(origin, mix.more) == self._setting(origin, mix.less):
            yield from self._harvest(origin, rest, mix.more)
            return
        chosen = self.generator.random(len(rest)) < mix.share
        yield from self._harvest(origin, rest[chosen], mix.more)
        yield from self._harvest(origin, rest[~chosen], mix.less)

    def _mix(self) -> Mix:
        """What rows do that harvest."""
        pace, mix = self.configuration.pace, self.configuration.mix
        if pace is None:
            return Mix(DEAR, CHEAP, mix)
        if self._governor is None:
            self._governor = Governor(pace, mix * pace.dear + (1 - mix) * pace.cheap)
        return pace.mix(self._governor.level)

    def _setting(self, origin: int, kind: int) -> Harvest:
        """What rows of a kind probe."""
        if kind in (DEAR, CHEAP):
            return (self.configuration.dear, self.configuration.cheap)[kind][origin]
        return None if kind == WHOLE else ((),) * len(self.configuration.orders[origin])

    def coverage(self, origin: int, harvest: Harvest) -> Coverage:
        """What rows with a harvest probe."""
        return Coverage(self.slices_of(origin), harvest)

    def _harvest(self, origin: int, rows: Ints, kind: int) -> Iterator[Part]:
        setting, watch = self._setting(origin, kind), None
        if setting is not None or self.configuration.pace is not None:
            watch = HarvestWatch(self.tally.directions[origin].harvested[kind])
        probing = self.coverage(origin, setting).probing(watch)
        if len(rows) and probing is not None:
            yield Part(rows, probing, self.deliver)

    def _shred(self, origin: int, rows: Ints, mix: Mix) -> Iterator[Part]:
        configuration = self.configuration
        full = configuration.dear[origin] is None and configuration.cheap[origin] is None
        thins = (1.0,) * len(configuration.orders[origin]) if full else configuration.thins[origin]
        sifts = not full and configuration.sifts[origin]
        watch = self.watch(origin, rows, thins, sifts=sifts)
        settings = self._setting(origin, mix.more), self._setting(origin, mix.less)
        coverages = tuple(self.coverage(origin, setting) for setting in settings)
        shred = _Shred(self, origin, rows, watch, thins, coverages, mix.share)
        before = self._first_partials(origin) if sifts else 0.0
        yield Part(rows, Probing(thins=thins, watch=watch, sifts=sifts), shred.observe)
        if sifts:
            found = self._first_partials(origin) - before
            self.tally.directions[origin].sifted += (1 - thins[0]) * found
        whole = all(own.everything for own in coverages)
        if not whole or any(store.weights is not None for store in self.stores):
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
        self,
        grub: GrubJoin,
        origin: int,
        rows: Ints,
        watch: DirectionWatch,
        thins: Sequence[float],
        others: tuple[Coverage, ...],
        mix: float,
    ) -> None:
        configuration = grub.configuration
        self._origin = origin
        self._order = configuration.orders[origin]
        self._first = int(rows[0])
        self._missing: Floats = np.zeros(int(rows[-1]) - self._first + 1)
        self._mixing: Floats = np.zeros(len(self._missing))
        self._watch = watch
        self._thins, self._found = thins, math.prod(thins)
        self._shred, self._mix = configuration.shred, mix
        # What the other rows probe.
        self._dear, self._cheap = others
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
        if self._dear.everything and self._cheap.everything and weights.max(initial=1.0) <= 1:
            return
        own = results.rows_of(self._origin)
        lags = self._stores[self._origin].times.take(own) - self._stores[self._order[0]].times.take(rows[0])
        dear, cheap = self._dear.found(places, lags), self._cheap.found(places, lags)
        unseen = weights - self._mix * dear - (1.0 - self._mix) * cheap
        self._missing += np.bincount(own - self._first, unseen, len(self._missing))
        self._mixing += np.bincount(own - self._first, dear - cheap, len(self._missing))
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
