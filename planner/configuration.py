"""What a strategy tells the operator to do: chosen between micro-batches, fixed within one."""

from __future__ import annotations

from dataclasses import dataclass

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
        shred: ω, the share of rows that are joined fully, to learn from.
        keep: The share of rows of each stream that enter the join at all.
    """

    orders: tuple[tuple[int, ...], ...]
    throttle: float = 1.0
    dear: tuple[Harvest, ...] = ()
    cheap: tuple[Harvest, ...] = ()
    mix: float = 1.0
    shred: float = 0.0
    keep: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.orders)
        for name in ("dear", "cheap"):
            if not getattr(self, name):
                object.__setattr__(self, name, (None,) * count)
        if not self.keep:
            object.__setattr__(self, "keep", (1.0,) * count)
        if not len(self.dear) == len(self.cheap) == len(self.keep) == count:
            msg = "a configuration needs an order, two harvests and a share to keep for each stream"
            raise ValueError(msg)
        if not 0 < self.throttle <= 1 or not 0 <= self.mix <= 1 or not 0 <= self.shred <= 1:
            msg = f"throttle {self.throttle}, mix {self.mix} and shred {self.shred} are shares"
            raise ValueError(msg)

    @property
    def is_exact(self) -> bool:
        """Whether every row enters the join and probes everything."""
        return all(harvest is None for harvest in (*self.dear, *self.cheap)) and min(self.keep) >= 1
