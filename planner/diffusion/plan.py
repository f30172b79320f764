"""What a router of a streaming join starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkshed.planner.diffusion.aligned import LANES
from sparkshed.planner.diffusion.ticks import Bounds, Ticks

#: Ticks in a basic window.
PER_BASIC = 8
#: Where rows travel, each tick of a micro-batch is probed on its own.
_PER_BASIC_ON_PATHS = 4
#: So few hosts can have every row: short segments keep all of them busy in every micro-batch.
_FEW_HOSTS = 8
#: Segments are at most this many times as long as the longest window.
_MOST_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """How a router cuts time, and what it chooses from.

    Attributes:
        kind: `atr` or `ctr`.
        tick: Length of a tick, in microseconds.
        length: T at first, in ticks.
        most: T at most, in ticks.
        orders: For CTR, the orders that rows of each stream can be joined in.
    """

    kind: str
    tick: int
    length: int = 1
    most: int = 1
    orders: tuple[tuple[tuple[int, ...], ...], ...] = ()

    @property
    def lanes(self) -> int:
        """Parts of a host that know nothing of each other."""
        return LANES if self.kind == "atr" else 1


def aligned_plan(bounds: Bounds, basic: int, hosts: int) -> RouterPlan:
    """Routing by the segments of a master.

    >>> aligned_plan(((0, 40), (40, 0)), 8, 2)
    RouterPlan(kind='atr', tick=1, length=1, most=320, orders=())
    """
    tick = max(1, basic // PER_BASIC)
    ticks = Ticks(tick, bounds)
    window = max(1, *(width_of(ticks, one, two) for one, _ in enumerate(bounds) for two in range(one)))
    length = 1 if hosts <= _FEW_HOSTS else max(1, window // hosts)
    return RouterPlan("atr", tick, length, max(length, _MOST_WINDOWS * window))


def coordinated_plan(basic: int, orders: tuple[tuple[tuple[int, ...], ...], ...]) -> RouterPlan:
    """Routing to where the partners are.

    >>> coordinated_plan(8, (((1,),), ((0,),))).tick
    2
    """
    return RouterPlan("ctr", max(1, basic // _PER_BASIC_ON_PATHS), orders=orders)


def stages_of(orders: Sequence[Sequence[Sequence[int]]]) -> list[set[int]]:
    """For each stream, the hops in which some rows probe it.

    >>> stages_of([[[1, 2]], [[0, 2]], [[1, 0]]])
    [{0, 1}, {0}, {1}]
    """
    found: list[set[int]] = [set() for _ in orders]
    for own in orders:
        for order in own:
            for hop, target in enumerate(order):
                found[target].add(hop)
    return found


def width_of(ticks: Ticks, one: int, two: int) -> int:
    """Ticks of one stream that rows of the other can meet; 0 if there is no end to them."""
    past, future = ticks.bounds[one][two], ticks.bounds[two][one]
    return 0 if past is None or future is None else max(0, past + future) // ticks.length
