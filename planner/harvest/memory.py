"""How long to remember what shredded rows taught.

What is learned in one interval is noisy where little is probed, so it is kept for longer the less there is of
it. Three things do not wait for that:

- window sizes: only what was found for each row in a slice is remembered, and not how full a window once
  was; a slice that was empty until now has little weight, however much is known of the others;
- rates: rows fade fast;
- lags: where an interval contradicts what was known, what was known is dropped.
"""

from __future__ import annotations

import numpy as np

from sparkshed.planner.harvest.tally import DirectionTally, Floats, HopTally, Tally

#: Seconds after which rows count half.
_RATES = 2.5
#: Seconds after which everything else counts half, at least and at most.
_SHORTEST, _LONGEST = 5.0, 60.0
#: Partial results of first hops that are enough to know a direction.
_ENOUGH = 1000.0
#: What is left of counts that are contradicted.
_CONTRADICTED = 0.05
#: Standard deviations of chi-square beyond its mean that are no accident.
_NO_ACCIDENT = 6.0
#: The share of results that must be elsewhere, however sure that is.
_ELSEWHERE = 0.3
#: Partial results that say as much as one that is independent of all others.
_TOGETHER = 8.0
#: Probes that former sizes of slices count as.
_FORMER_SIZES = 0.2


def remember(known: Tally, interval: Tally, seconds: float) -> Tally:
    """What is known after an interval of so many seconds; changes and returns `known`."""
    for origin, (old, new) in enumerate(zip(known.directions, interval.directions, strict=True)):
        keep = _CONTRADICTED if contradicts(old, new, origin) else _kept(old, new, origin, seconds)
        rows = old.rows * 0.5 ** (seconds / _RATES)
        old.decay(keep)
        old.rows = rows
        if new.learned > 0:
            _forget_former_orders(old, new, origin)
        for key, hop in new.hops.items():
            if key in old.hops:
                _resize(old.hops[key], hop)
        old.add(new)
    lags = 0.5 ** (seconds / _SHORTEST)
    for counts, more in zip(known.streams, interval.streams, strict=True):
        counts *= lags
        counts += more
    return known


def _kept(old: DirectionTally, new: DirectionTally, origin: int, seconds: float) -> float:
    """The share of old counts to keep, so that there are enough."""
    missing = _ENOUGH - evidence(new, origin)
    before = evidence(old, origin)
    shortest, longest = 0.5 ** (seconds / _SHORTEST), 0.5 ** (seconds / _LONGEST)
    return longest if before <= 0 else float(min(max(missing / before, shortest), longest))


def evidence(known: DirectionTally, origin: int) -> float:
    """Partial results of first hops that went on; what follows from one of them is not independent."""
    met = sum(float(hop.partials.sum()) for (first, _), hop in known.hops.items() if first == {origin})
    return met - known.sifted


def independent(known: DirectionTally, origin: int) -> float:
    """How many independent observations the results are worth.

    Results of one row come together, and neighbouring rows find the same partners, so there are fewer than
    there are partial results.
    """
    return min(known.results, evidence(known, origin) / _TOGETHER)


def contradicts(old: DirectionTally, new: DirectionTally, origin: int) -> bool:
    """Whether results are elsewhere than they were, by a chi-square test of two samples for each pair."""
    sizes = [independent(t, origin) for t in (old, new)]
    if min(sizes) < 10:
        return False
    return any(_far(old.lags[t], counts, sizes) for t, counts in new.lags.items() if t in old.lags)


def _far(old: Floats, new: Floats, sizes: list[float]) -> bool:
    used = (old + new) > 0
    if old.sum() <= 0 or new.sum() <= 0:
        return False
    p, q = old[used] / old.sum(), new[used] / new.sum()
    n, m = sizes
    together = (n * p + m * q) / (n + m)
    if float(np.abs(p - q).sum()) / 2 < _ELSEWHERE:
        return False
    square = float(((p - q) ** 2 / together).sum()) * n * m / (n + m)
    freedom = max(1, int(used.sum()) - 1)
    return square > freedom + _NO_ACCIDENT * float(np.sqrt(2 * freedom))


def _resize(known: HopTally, new: HopTally) -> None:
    """How full windows are now. Before an interval told, they were as full as counts say."""
    if known.sizes is None:
        known.sizes = known.pairs / max(known.probes, 1e-12)
    known.sizes = (new.pairs + _FORMER_SIZES * known.sizes) / (new.probes + _FORMER_SIZES)


def _forget_former_orders(old: DirectionTally, new: DirectionTally, origin: int) -> None:
    """Drop hops that were not made in the interval: windows change, and nothing says how.

    First hops are kept, because every one is made now and then, and they stand in for the others.
    """
    old.hops = {key: hop for key, hop in old.hops.items() if key in new.hops or key[0] == {origin}}
