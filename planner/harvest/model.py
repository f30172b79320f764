"""Cost C and output O of a join that probes only some slices of its windows.

    direction i      hop 1 (window l = r_i1)      hop 2 (window r_i2)
                     slice 0   1   2   3          slice 0   1   2   3
    a new row  --->        .   x   x   .   --->         x   .   .   .   --->  results
                           chosen: (1, 2)               chosen: (0,)

A slice is a logical basic window: a range of time relative to the probing row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

DirectionSetting = tuple[tuple[int, ...], ...]
"""For each hop the chosen slices, from 0, ascending. A direction that is off has `()` in every hop."""

Setting = tuple[DirectionSetting, ...]
"""What each direction probes."""


@dataclass(frozen=True, slots=True)
class HopModel:
    """One hop of a direction, slice by slice.

    Attributes:
        cost: Work units that one probe of the slice is expected to take.
        partials: Partial results that one probe of the slice is expected to find.
        share: Share of the final results whose partner lies in the slice, p_ij^k. Any scale will do:
            it is kept with the sum 1. All zeros mean that nothing is known, and every slice gets the same.
        base: Work units that a probe takes whatever its slices: the search in an index.

    >>> HopModel(cost=(5, 5), partials=(1, 1), share=(3, 1)).share
    (0.75, 0.25)
    """

    cost: tuple[float, ...]
    partials: tuple[float, ...]
    share: tuple[float, ...]
    base: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.cost) == len(self.partials) == len(self.share) > 0:
            sizes = f"{len(self.cost)}, {len(self.partials)} and {len(self.share)}"
            message = f"cost, partials and share need one value per slice, found {sizes} values."
            raise ValueError(message)
        for name in ("cost", "partials", "share"):
            values = getattr(self, name)
            if not (isfinite(sum(values)) and min(values) >= 0):
                message = f"{name} must be finite and not negative, found {values}."
                raise ValueError(message)
        if not (isfinite(self.base) and self.base >= 0):
            message = f"base must be finite and not negative, found {self.base}."
            raise ValueError(message)
        object.__setattr__(self, "share", normalised(self.share))


@dataclass(frozen=True, slots=True)
class DirectionModel:
    """All the work for new rows of one stream.

    Attributes:
        rate: Probing rows per second, λ_i, or any other weight.
        results: Final results of one probing row when everything is probed.
        hops: In the direction's order R_i.
    """

    rate: float
    results: float
    hops: tuple[HopModel, ...]

    def __post_init__(self) -> None:
        for name in ("rate", "results"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                message = f"{name} must be finite and not negative, found {getattr(self, name)}."
                raise ValueError(message)
        if not self.hops:
            message = "A direction has at least one hop."
            raise ValueError(message)

    def cost(self, setting: DirectionSetting) -> float:
        """C_i: work units per second."""
        if not all(setting):
            return 0.0
        total, entering = 0.0, 1.0
        for hop, slices in zip(self.hops, setting, strict=True):
            total += entering * (hop.base + sum([hop.cost[k] for k in slices]))
            entering *= sum([hop.partials[k] for k in slices])
        return self.rate * total

    def output(self, setting: DirectionSetting) -> float:
        """O_i: results per second."""
        found = self.rate * self.results
        for hop, slices in zip(self.hops, setting, strict=True):
            found *= 1.0 if len(slices) == len(hop.share) else sum([hop.share[k] for k in slices])
        return found

    @property
    def full_setting(self) -> DirectionSetting:
        """Every slice of every hop."""
        return tuple(tuple(range(len(hop.cost))) for hop in self.hops)

    @property
    def full_cost(self) -> float:
        """C_i(1): work units per second when everything is probed."""
        return self.cost(self.full_setting)

    @property
    def off(self) -> DirectionSetting:
        """No slice of any hop."""
        return ((),) * len(self.hops)


@dataclass(frozen=True, slots=True)
class JoinModel:
    """What each direction costs and finds."""

    directions: tuple[DirectionModel, ...]

    def __post_init__(self) -> None:
        if not self.directions:
            message = "A join has at least one direction."
            raise ValueError(message)

    def cost(self, setting: Setting) -> float:
        """C: work units per second."""
        return sum(d.cost(s) for d, s in zip(self.directions, setting, strict=True))

    def output(self, setting: Setting) -> float:
        """O: results per second."""
        return sum(d.output(s) for d, s in zip(self.directions, setting, strict=True))

    @property
    def full_setting(self) -> Setting:
        """Every slice of every window: the exact join."""
        return tuple(direction.full_setting for direction in self.directions)

    @property
    def full_cost(self) -> float:
        """C(1)."""
        return self.cost(self.full_setting)

    @property
    def full_output(self) -> float:
        """O(1)."""
        return self.output(self.full_setting)


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting, or two of them for random shares of the rows.

    Attributes:
        dear: For the share `mix` of the rows.
        cheap: For the other rows. The same as `dear` when nothing is mixed; `mix` is then 1.
        mix: Between 0 and 1.
    """

    dear: Setting
    cheap: Setting
    mix: float = 1.0

    def cost(self, model: JoinModel) -> float:
        """Expected C."""
        return self._expected(model.cost(self.dear), model.cost(self.cheap))

    def output(self, model: JoinModel) -> float:
        """Expected O."""
        return self._expected(model.output(self.dear), model.output(self.cheap))

    def _expected(self, dear: float, cheap: float) -> float:
        return self.mix * dear + (1.0 - self.mix) * cheap


def normalised(values: Sequence[float]) -> tuple[float, ...]:
    """The same proportions with the sum 1; all equal if every value is 0."""
    total = sum(values)
    if total == 0:
        return (1.0 / len(values),) * len(values)
    return tuple([value / total for value in values])


def paper_model(
    rates: Sequence[float],
    windows: Sequence[float],
    selectivity: Sequence[Sequence[float]],
    scores: Sequence[Sequence[Sequence[float]]],
    orders: Sequence[Sequence[int]],
    include_output: bool = False,
) -> JoinModel:
    """The model of the paper: nested loops, and partners found where results are.

    Args:
        rates: λ_l, rows per second of each stream.
        windows: w_l, seconds.
        selectivity: σ_il, matches per comparison when new rows of S_i probe W_l.
        scores: p_i^k for each pair (i, l), a value for each slice of W_l.
        orders: R_i, the streams that each direction probes, in order.
        include_output: Count a unit of work for each result, too.

    >>> flat = [[[1, 1], [1, 1]], [[1, 1], [1, 1]]]
    >>> model = paper_model([10, 10], [2, 2], [[0, 0.1], [0.1, 0]], flat, [[1], [0]])
    >>> model.full_cost, model.full_output
    (400.0, 40.0)
    """
    directions = []
    for origin, order in enumerate(orders):
        hops, results = [], 1.0
        for number, target in enumerate(order):
            rows = rates[target] * windows[target]
            share = normalised(scores[origin][target])
            found = selectivity[origin][target] * rows
            output = found if include_output and number == len(order) - 1 else 0.0
            cost = tuple(rows / len(share) + output * p for p in share)
            hops.append(HopModel(cost, tuple(found * p for p in share), share))
            results *= found
        directions.append(DirectionModel(rates[origin], results, tuple(hops)))
    return JoinModel(tuple(directions))
