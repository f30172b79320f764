"""What a strategy tells the operator to do: chosen between micro-batches, fixed within one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from sparkshed.planner.pace import Pace
from sparkshed.planner.slices import Slices, Span

#: The slices that each hop of a direction probes; None is all of them.
Harvest = tuple[tuple[int, ...], ...] | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration of the operator.

    Attributes:
        throttle: z, the share of the full join's work that may be spent.
        orders: R_i, the order in which rows of each stream probe the others.
        dear: What rows of each stream probe, for a share `mix` of the rows.
        cheap: What the other rows probe.
        mix: The share of rows that use `dear`.
        partly: What rows of each stream probe besides whole slices of their first window: a part of one more,
            as a range of time; None for nothing.
        shred: ω, the share of rows that are shredded, to learn from.
        thins: What share of each window of its order a shredded row sees; their product is the share of its
            results that it finds. All alike, so that it is z, unless told otherwise.
        sifts: Whether shredded rows of each stream probe their first window as a whole, and only then leave
            out the partners that are not in its share. With an index that costs little, and first hops are
            known better.
        tries: What share of a window that is not first in their order shredded rows see, to compare orders;
            the share of results that they find, unless told otherwise.
        keep: The share of rows of each stream that enter the join at all.
        rear: k_r, the share of those of each stream that enter the windows and do not probe.
        horizons: How old, in microseconds, rows of each stream are when most of them are dropped from the
            windows, because no harvest reaches farther back; None keeps all.
        reserve: The share of rows that stays beyond the horizon, to learn from.
        price: What the next unit of work would bring, over what one brings on average: rows whose results are
            worth less than the work on them need not be kept. 0 where nothing is left undone.
        pace: What rows may cost, where a share of the full work is promised; `mix` is then where rows start.
    """

    orders: tuple[tuple[int, ...], ...]
    throttle: float = 1.0
    dear: tuple[Harvest, ...] = ()
    cheap: tuple[Harvest, ...] = ()
    mix: float = 1.0
    shred: float = 0.0
    keep: tuple[float, ...] = ()
    thins: tuple[tuple[float, ...], ...] = ()
    horizons: tuple[int | None, ...] = ()
    reserve: float = 1.0
    tries: tuple[float, ...] = ()
    sifts: tuple[bool, ...] = ()
    partly: tuple[Span | None, ...] = ()
    rear: tuple[float, ...] = ()
    price: float = 0.0
    pace: Pace | None = None

    def __post_init__(self) -> None:
        count = len(self.orders)
        for name in ("dear", "cheap", "partly", "horizons"):
            if not getattr(self, name):
                object.__setattr__(self, name, (None,) * count)
        if not self.keep:
            object.__setattr__(self, "keep", (1.0,) * count)
        if not self.rear:
            object.__setattr__(self, "rear", (0.0,) * count)
        if not self.thins:
            thins = tuple(alike(self.throttle, len(order)) for order in self.orders)
            object.__setattr__(self, "thins", thins)
        if not self.tries:
            object.__setattr__(self, "tries", tuple(prod(thins) for thins in self.thins))
        if not self.sifts:
            object.__setattr__(self, "sifts", (False,) * count)
        probes = (self.dear, self.cheap, self.partly, self.thins, self.sifts, self.tries)
        if any(len(own) != count for own in (*probes, self.keep, self.horizons, self.rear)):
            msg = "a configuration needs an order, two harvests, shares and a horizon for each stream"
            raise ValueError(msg)
        if not 0 < self.throttle <= 1 or not 0 <= self.mix <= 1 or not 0 <= self.shred <= 1:
            msg = f"throttle {self.throttle}, mix {self.mix} and shred {self.shred} are shares"
            raise ValueError(msg)
        if not 0 <= self.price <= 1:
            msg = f"the price is a share of what work brings on average, found {self.price}"
            raise ValueError(msg)
        if not 0 < self.reserve <= 1:
            msg = f"the reserve must be above 0 and at most 1, found {self.reserve}"
            raise ValueError(msg)

    @property
    def is_exact(self) -> bool:
        """Whether every row enters the join and probes everything."""
        everything = all(harvest is None for harvest in (*self.dear, *self.cheap))
        return everything and min(self.keep) >= 1 and max(self.rear) <= 0


def alike(share: float, hops: int) -> tuple[float, ...]:
    """Shares of windows, one like the other, that leave a share of the results.

    >>> alike(0.25, 2)
    (0.5, 0.5)
    """
    return (share ** (1 / hops),) * hops


def harvested(configuration: Configuration, origin: int) -> Harvest:
    """The slices that some row of a stream may probe at each hop of its order; None is all of them.

    Which rows are shredded is left to chance, and they see all slices. A harvest that leaves out a hop
    is switched off.

    >>> setting = Configuration(((1, 2), (0, 2), (0, 1)), 0.5, (((3,), (0, 1)),) * 3, (((2,), ()),) * 3, 0.5)
    >>> harvested(setting, 0)
    ((3,), (0, 1))
    """
    shares = (configuration.mix, 1 - configuration.mix)
    kinds = zip((configuration.dear[origin], configuration.cheap[origin]), shares, strict=True)
    used = [harvest for harvest, share in kinds if share > 0]
    if configuration.shred > 0 or None in used:
        return None
    hops = range(len(configuration.orders[origin]))
    working = [harvest for harvest in used if harvest is not None and all(harvest)]
    return tuple(tuple(sorted({n for harvest in working for n in harvest[hop]})) for hop in hops)


def farthest(
    harvests: Iterable[Harvest], orders: Sequence[Sequence[int]], slices: Sequence[Sequence[Slices]]
) -> tuple[int | None, ...]:
    """How far back, in microseconds, the harvests of all directions reach into each stream.

    None where one of them reaches everything. Rows that are older are never probed, except by rows that
    are shredded::

        W_l   |....|....|####|....|##..|   what the directions harvest of stream l
              older     ▲ horizon     newest

    Args:
        harvests: Of each direction, in turn; a direction may come several times.
        orders: The orders of the directions, as many as harvests.
        slices: The slices of each pair of streams.
    """
    reach: list[int | None] = [0] * len(slices)
    for number, (harvest, order) in enumerate(zip(harvests, orders, strict=True)):
        origin = number % len(slices)
        for place, target in enumerate(order):
            own, known = slices[origin][target], reach[target]
            chosen = None if harvest is None else harvest[place] if all(harvest) else ()
            if chosen is None or own.last in chosen:
                reach[target] = None
            elif chosen and known is not None:
                reach[target] = max(known, (chosen[-1] + 1) * own.basic)
    return tuple(reach)
