"""GrubJoin: rows probe the slices of the windows in which results are most likely."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sparkshed.engine.arrays import Ints
from sparkshed.engine.partials import Candidates, Partials
from sparkshed.engine.probing import EVERYTHING, Probing
from sparkshed.engine.store import RowStore
from sparkshed.engine.strategies.exact import Exact
from sparkshed.engine.strategies.ledger import Floats, Ledger
from sparkshed.engine.strategies.protocol import Part
from sparkshed.engine.watching import DirectionWatch
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration, Harvest
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec
from sparkshed.planner.slices import Slices

#: New rows of a stream that try, in each batch, a window that is not first in their order.
_TRIED = 16


class GrubJoin(Exact):
    """Window harvesting, with shredded rows to learn from.

    The new rows of a stream are of three kinds::

        share ω            shredded: join everything, but see only a share z of their first window
        (1 - ω) · mix      join the slices of the dearer setting
        (1 - ω)(1 - mix)   join the slices of the cheaper one

    The results of all of them are emitted. Those of shredded rows are a sample without bias of all
    results, so they tell where results are, what they cost, and how many are missed.
    """

    def __init__(self, configuration: Configuration, generator: np.random.Generator) -> None:
        """Start with a configuration; the generator decides which rows are shredded."""
        super().__init__(configuration)
        self._generator = generator

    def bind(self, spec: JoinSpec, stores: Sequence[RowStore]) -> None:
        """Get to know the operator."""
        super().bind(spec, stores)
        self._slices = spec.slices
        buckets = max(slices.count for row in self._slices for slices in row if slices is not None)
        self.tally = Tally.empty(len(spec.streams), buckets)
        self.ledgers = [Ledger() for _ in spec.streams]
        self._squares = 0.0
        self._missed = Completeness()
        self._turn = 0

    def parts(self, origin: int, rows: Ints) -> Iterator[Part]:
        """Shredded rows first, then those that harvest."""
        configuration, tally = self.configuration, self.tally.directions[origin]
        tally.rows += len(rows)
        draws = self._generator.random(len(rows))
        shredded = rows[draws < configuration.shred]
        rest = rows[draws >= configuration.shred]
        if len(shredded):
            yield from self._learning(origin, shredded)
        dear, cheap = configuration.dear[origin], configuration.cheap[origin]
        if dear == cheap:
            yield from self._harvest(origin, rest, dear)
            return
        chosen = self._generator.random(len(rest)) < configuration.mix
        yield from self._harvest(origin, rest[chosen], dear)
        yield from self._harvest(origin, rest[~chosen], cheap)

    def _harvest(self, origin: int, rows: Ints, harvest: Harvest) -> Iterator[Part]:
        if harvest is None:
            probing = EVERYTHING
        elif not all(harvest):
            return
        else:
            probing = Probing.harvest(self.slices_of(origin), harvest)
        if len(rows):
            yield Part(rows, probing, self.deliver)

    def slices_of(self, origin: int, order: Sequence[int] | None = None) -> list[Slices]:
        """The slices of each hop of a direction, in its order or in another one."""
        found = [self._slices[origin][target] for target in order or self.configuration.orders[origin]]
        return [slices for slices in found if slices is not None]

    def _learning(self, origin: int, rows: Ints) -> Iterator[Part]:
        configuration, tally = self.configuration, self.tally.directions[origin]
        order, slices = configuration.orders[origin], self.slices_of(origin)
        full = configuration.dear[origin] is None and configuration.cheap[origin] is None
        thin = 1.0 if full else configuration.throttle
        tally.learned += len(rows) * thin
        watch = DirectionWatch(origin, order, slices, self._stores, tally, thin)
        shred = _Shred(self, origin, rows, watch, thin)
        yield Part(rows, Probing(thin=thin, watch=watch), shred.observe)
        if not full:
            self.missed(shred.completeness())
        others = order[1:]
        if others:
            # A different window each time, so that orders can be chosen by selectivities of all pairs.
            self._turn += 1
            first = others[self._turn % len(others)]
            trial = (first, *(target for target in order if target != first))
            watch = DirectionWatch(origin, trial, self.slices_of(origin, trial), self._stores, tally, thin)
            yield Part(rows[:_TRIED], Probing(thin=thin, watch=watch), only=first)

    def settle(self) -> Completeness:
        """What share of the micro-batch's results was delivered."""
        squares = sum(ledger.squares for ledger in self.ledgers)
        missed = replace(self._missed, variance=self._missed.variance + squares - self._squares)
        self._missed, self._squares = Completeness(), squares
        self.completeness += missed
        return missed + super().settle()

    def renumbered(self, stream: int, rows: Ints) -> None:
        """Amounts follow their rows."""
        self.ledgers[stream].renumber(rows)

    def missed(self, share: Completeness) -> None:
        """Count results that are missed in this micro-batch."""
        self._missed += share


class _Shred:
    """Results of the shredded rows of one stream in one micro-batch.

    A result that the other rows would miss with probability u stands for u·(1 - ω)/ω of their results;
    and as shredded rows see a share z of a window, each result stands for 1/z of them.
    """

    def __init__(self, grub: GrubJoin, origin: int, rows: Ints, watch: DirectionWatch, thin: float) -> None:
        configuration = grub.configuration
        self._origin = origin
        self._order = configuration.orders[origin]
        self._first = int(rows[0])
        self._missing: Floats = np.zeros(int(rows[-1]) - self._first + 1)
        self._mixing: Floats = np.zeros(len(self._missing))
        self._watch = watch
        self._thin = thin
        self._shred, self._mix = configuration.shred, configuration.mix
        slices = grub.slices_of(origin)
        self._dear = _masks(slices, configuration.dear[origin])
        self._cheap = _masks(slices, configuration.cheap[origin])
        self._ledger = grub.ledgers[self._order[0]]
        self._deliver = grub.deliver
        self._missed = 0.0

    def observe(self, results: Partials | Candidates) -> None:
        """Learn from results, and find out what the others miss."""
        self._deliver(results)
        rows = [results.rows_of(target) for target in self._order]
        places = self._watch.results(results, rows)
        if self._dear is None and self._cheap is None:
            return
        dear, cheap = _covered(self._dear, places), _covered(self._cheap, places)
        unseen = 1.0 - self._mix * dear - (1.0 - self._mix) * cheap
        own = results.rows_of(self._origin) - self._first
        self._missing += np.bincount(own, unseen, len(self._missing))
        self._mixing += np.bincount(own, dear - cheap, len(self._missing))
        amounts = (unseen * (1 - self._shred) / self._shred + (1 - self._thin)) / self._thin
        self._ledger.add(rows[0], amounts * math.sqrt(1 - self._thin))
        self._missed += float(amounts.sum())

    def completeness(self) -> Completeness:
        """Results that are missed, and how sure that is as far as it depends on which rows were shredded."""
        scale = (1 - self._shred) / self._shred
        rows = float((self._missing**2).sum()) * scale / self._shred
        mixing = float((self._mixing**2).sum()) * scale * self._mix * (1 - self._mix)
        weight = (scale + 1 - self._thin) / self._thin
        return Completeness(0.0, self._missed, (rows + mixing) / self._thin**2, weight)


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
