"""What routing costs: rows that are sent beyond one copy of each, in a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparkshed.planner.diffusion.ticks import Bounds

_SECOND = 1_000_000
#: Another master has to send less than this share of the copies.
_CLEARLY = 0.8
Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Flow:
    """Streams as routing sees them.

    Attributes:
        rates: Rows of each stream in a second.
        reach: Seconds of stream k that rows of stream i can meet, by i and k.
        selectivity: The share of them that match, by i and k.
    """

    rates: tuple[float, ...]
    reach: tuple[tuple[float, ...], ...]
    selectivity: tuple[tuple[float, ...], ...]

    def matches(self, stream: int, other: int) -> float:
        """Rows of another stream that a row of a stream matches, on average."""
        return self.selectivity[stream][other] * self.rates[other] * self.reach[stream][other]


def reach_of(bounds: Bounds) -> tuple[tuple[float, ...], ...]:
    """Seconds of stream k that rows of stream i can meet, by i and k, from bounds in microseconds.

    >>> reach_of(((0, 1_000_000), (3_000_000, 0))), reach_of(((0, None), (5, 0)))[0][1]
    (((0.0, 4.0), (4.0, 0.0)), inf)
    """

    def seconds(past: int | None, future: int | None) -> float:
        return float("inf") if past is None or future is None else max(0, past + future) / _SECOND

    streams = range(len(bounds))
    return tuple(tuple(seconds(bounds[i][k], bounds[k][i]) for k in streams) for i in streams)


def aligned(flow: Flow, master: int, length: float, hosts: int) -> float:
    """Copies that ATR makes: `Σ (W_i + W_M)/T · r_i` over the slaves, and at most one for each other host.

    >>> flow = Flow((10.0, 5.0), ((0.0, 4.0), (4.0, 0.0)), ((0.0, 0.1), (0.1, 0.0)))
    >>> aligned(flow, 0, 8.0, 10), aligned(flow, 0, 0.1, 3)
    (2.5, 10.0)

    Args:
        flow: The streams.
        master: The stream whose segments are dealt out.
        length: T, the length of a segment in seconds.
        hosts: Number of hosts.
    """
    copies = 0.0
    for stream, rate in enumerate(flow.rates):
        if stream != master:
            copies += min(hosts - 1.0, flow.reach[stream][master] / length) * rate
    return copies


def best_master(flow: Flow, length: float, hosts: int, among: Iterable[int] | None = None) -> int:
    """The master with the fewest copies; of equal ones the first.

    >>> best_master(Flow((10.0, 5.0), ((0.0, 4.0), (4.0, 0.0)), ((0.0, 0.1), (0.1, 0.0))), 8.0, 10)
    0
    """
    streams = range(len(flow.rates)) if among is None else among
    return min(streams, key=lambda own: (aligned(flow, own, length, hosts), own))


def next_master(
    flow: Flow, present: int, length: float, hosts: int, among: Iterable[int] | None = None
) -> int:
    """The present master, unless another one makes clearly fewer copies: a change makes some, too.

    >>> flow = Flow((10.0, 11.0), ((0.0, 4.0), (4.0, 0.0)), ((0.0, 0.1), (0.1, 0.0)))
    >>> faster = Flow((10.0, 13.0), flow.reach, flow.selectivity)
    >>> next_master(flow, 0, 8.0, 10), next_master(faster, 0, 8.0, 10)
    (0, 1)
    """
    best = best_master(flow, length, hosts, among)
    fewer = aligned(flow, best, length, hosts) < _CLEARLY * aligned(flow, present, length, hosts)
    return best if fewer else present


def coordinated(flow: Flow, orders: Sequence[Sequence[int]], first: float, fresh: float) -> float:
    """What CTR sends: `Σ r_i (|V_1| - 1 + Σ_k Π_j σ·r·W · |V'_k|)`.

    >>> flow = Flow((10.0, 10.0, 10.0), ((4.0, 4.0, 4.0),) * 3, ((0.1, 0.1, 0.1),) * 3)
    >>> coordinated(flow, ((1, 2), (0, 2), (0, 1)), 2.0, 1.0)
    150.0

    Args:
        flow: The streams.
        orders: The order of each stream.
        first: |V_1|, the hosts of a first hop.
        fresh: |V'_k|, those of another hop that are not hosts of the hop before.
    """
    total = 0.0
    for stream, rate in enumerate(flow.rates):
        partials, sent = 1.0, first - 1
        for target in orders[stream][:-1]:
            partials *= flow.matches(stream, target)
            sent += partials * fresh
        total += rate * sent
    return total
