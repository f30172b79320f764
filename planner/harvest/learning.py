"""From tallies to the model that choosers work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparkshed.planner.configuration import Harvest
from sparkshed.planner.harvest.evenness import even
from sparkshed.planner.harvest.memory import independent
from sparkshed.planner.harvest.model import DirectionModel, DirectionSetting, HopModel, JoinModel
from sparkshed.planner.harvest.scores import pairwise_scores, per_stream_scores
from sparkshed.planner.harvest.tally import DirectionTally, Floats, HopTally, Tally
from sparkshed.planner.slices import Slices

#: Results, and partial results of a hop, that are pretended to have been seen, spread over all slices.
_PRIOR = 1.0
_HALF = 0.5
#: A stream without rows keeps this weight, so that a harvest is chosen for the rows that may come.
_SILENT = 1e-6


@dataclass(frozen=True, slots=True)
class Learned:
    """A model, and which slices its hops have.

    Slices in which no row has ever been are left out of the model; `numbers[i][j]` are those that hop j of
    direction i has in it. They are harvested where all others are.
    """

    model: JoinModel
    numbers: tuple[tuple[tuple[int, ...], ...], ...]

    def harvest(self, direction: int, setting: DirectionSetting, slices: Sequence[Slices]) -> Harvest:
        """A setting of the model as slice numbers; None if everything is probed."""
        chosen = []
        for own, numbers, places in zip(slices, self.numbers[direction], setting, strict=True):
            if not places:
                return ((),) * len(slices)
            if len(places) == len(numbers):
                chosen.append(tuple(range(own.first, own.last + 1)))
            else:
                chosen.append(tuple(sorted(numbers[place] for place in places)))
        if all(len(own) == s.count for own, s in zip(chosen, slices, strict=True)):
            return None
        return tuple(chosen)

    def places(self, direction: int, harvest: Harvest) -> DirectionSetting:
        """Slice numbers as a setting of the model: the inverse of :meth:`harvest`."""
        if harvest is None:
            return self.model.directions[direction].full_setting
        return tuple(
            tuple(place for place, number in enumerate(numbers) if number in chosen)
            for numbers, chosen in zip(self.numbers[direction], harvest, strict=True)
        )


def learned_model(
    tally: Tally,
    orders: Sequence[Sequence[int]],
    slices: Sequence[Sequence[Slices]],
    *,
    per_stream: bool = False,
    doubt: bool = True,
) -> Learned | None:
    """The model of the join in the given orders; None while a stream with rows has taught nothing.

    Args:
        tally: What shredded rows met.
        orders: R_i of every direction.
        slices: The slices of each pair of streams.
        per_stream: Take scores from one histogram per stream, as in the paper, and not from one per pair.
        doubt: Take a slice in which few rows found nobody for one that may well have partners. What is found
            is a little more than what was counted then, so totals are better without it.
    """
    directions, numbers = [], []
    for origin, order in enumerate(orders):
        known = tally.directions[origin]
        if known.learned <= 0 or _knows_nothing(known, origin):
            if known.rows > 0:
                return None
            known = DirectionTally()
        hops, own = [], []
        for place, target in enumerate(order):
            hop = _hop_tally(known, frozenset((origin, *order[:place])), target, slices[origin][target].count)
            if doubt:
                hop = _with_unseen(hop, known.hops.get((frozenset([origin]), target)))
            scores = _scores(tally, origin, target, slices[origin][target], hop, per_stream=per_stream)
            last = place == len(order) - 1
            if scores is None:
                # Nor do slices differ in what their results cost: the luckless ones would seem cheap, and
                # get chosen for it.
                scores = hop.pairs if hop.sizes is None else hop.sizes
                hop = _evened(hop) if last else hop
            used = np.flatnonzero((hop.pairs > 0) | (hop.touched > 0))
            if not len(used):
                used = np.arange(slices[origin][target].count)
            prior = _PRIOR if doubt else 0.0
            hops.append(_hop_model(hop, scores, used, prior, last=last))
            own.append(tuple((used + slices[origin][target].first).tolist()))
        # Half a result is assumed where none was seen, so that no direction is taken for worthless.
        results = max(known.results, _HALF) / max(known.learned, 1.0)
        directions.append(DirectionModel(max(known.rows, _SILENT), results, tuple(hops)))
        numbers.append(tuple(own))
    return Learned(JoinModel(tuple(directions)), tuple(numbers))


def _knows_nothing(known: DirectionTally, origin: int) -> bool:
    """Whether rows saw so little that windows where they met nobody need not be empty."""
    first = [hop for (joined, _), hop in known.hops.items() if joined == {origin}]
    return all(hop.probes < 1 and not hop.pairs.any() for hop in first)


def _hop_tally(known: DirectionTally, joined: frozenset[int], target: int, slices: int) -> HopTally:
    """What the hop met; if it was never made like this, what a first hop to the same stream met, or any."""
    own = known.hops.get((joined, target))
    if own is not None and own.probes > 0:
        return own
    origin = next((first for first, _ in known.hops if len(first) == 1), joined)
    first = known.hops.get((origin, target))
    if first is not None and first.probes > 0:
        return replace(first, partials=first.partials * _later(known, origin))
    similar = [hop for (_, other), hop in known.hops.items() if other == target and hop.probes > 0]
    return max(similar, key=lambda hop: hop.probes, default=HopTally.empty(slices))


def _with_unseen(hop: HopTally, first: HopTally | None) -> HopTally:
    """The hop with rows in slices where it met none, but rows that probed the window directly did.

    Few rows come to a later hop where little is probed. What it has not met is not free.
    """
    if first is None or first is hop or not 0 < hop.probes or not first.probes:
        return hop
    there = first.per_probe(first.pairs)
    unseen = (hop.pairs <= 0) & (there > 0)
    if not unseen.any():
        return hop
    # A slice is as full as for direct probes, and like others of the hop, or of direct probes, otherwise.
    like = hop if hop.pairs.sum() > 0 else first
    pairs = np.where(unseen, hop.probes * there, 0.0)
    met = max(float(like.pairs.sum()), 1e-12)
    return replace(
        hop,
        pairs=hop.pairs + pairs,
        touched=hop.touched + pairs * (float(like.touched.sum()) / met),
        partials=hop.partials + pairs * (float(like.partials.sum()) / met),
        sizes=None if hop.sizes is None else np.where(unseen, there, hop.sizes),
    )


def _later(known: DirectionTally, origin: frozenset[int]) -> float:
    """What later hops find, with more conditions to meet, as a share of what first hops do."""
    ratios = []
    for (joined, target), hop in known.hops.items():
        first = known.hops.get((origin, target))
        if len(joined) > 1 and first is not None:
            found, usual = (float(own.per_probe(own.partials).sum()) for own in (hop, first))
            if min(found, usual) > 0:
                ratios.append(found / usual)
    return min(1.0, float(np.exp(np.mean(np.log(ratios))))) if ratios else 1.0


def _hop_model(hop: HopTally, scores: Floats, used: np.ndarray, prior: float, *, last: bool) -> HopModel:
    probes = max(hop.probes, 1e-12)
    doubtful = hop.partials + prior * hop.pairs / max(float(hop.pairs.sum()), 1e-12)
    cost, partials = hop.per_probe(hop.touched)[used], hop.per_probe(doubtful)[used]
    if last:
        # Each result is a unit of work.
        cost = cost + partials
    return HopModel(
        tuple(cost.tolist()), tuple(partials.tolist()), tuple(scores[used].tolist()), hop.searches / probes
    )


def _evened(hop: HopTally) -> HopTally:
    """The hop with its work and its results where the rows are."""
    touched, found, met = (
        float(hop.per_probe(counts).sum()) for counts in (hop.touched, hop.partials, hop.pairs)
    )
    each = hop.pairs / max(met, 1e-12)
    return replace(hop, touched=each * touched, partials=each * found)


def _scores(
    tally: Tally, origin: int, target: int, slices: Slices, hop: HopTally, *, per_stream: bool
) -> Floats | None:
    """The score of each slice; None if it is clear enough that results do not depend on the slice."""
    if per_stream:
        found = per_stream_scores(tally.streams, origin, target, slices.first, slices.count)
        return np.asarray(found) + _PRIOR / slices.count / max(1.0, tally.directions[origin].results)
    known = tally.directions[origin]
    counts = known.lags.get(target)
    if counts is None:
        return np.full(slices.count, 1 / slices.count)
    base = hop.pairs if hop.sizes is None else hop.sizes
    if even(counts, base, independent(known, origin)):
        return None
    return np.asarray(pairwise_scores(counts, _PRIOR))
