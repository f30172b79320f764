"""Weighted set cover: few hosts with little to do that have all of the segments between them."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace


def cover(wanted: int, having: Mapping[int, int], loads: Mapping[int, float]) -> dict[int, int]:
    """Hosts that have all wanted segments, greedily: the lowest load per segment that is still wanted, first.

    Sets of segments are the bits of a number. Each segment is given to one of the hosts that have it, the
    one with the lowest load among those that are chosen; for the others it is void, so that nothing is
    found twice.

    >>> cover(0b111, {0: 0b011, 1: 0b110, 2: 0b111}, {0: 1.0, 1: 1.0, 2: 4.0})
    {0: 3, 1: 4}

    Args:
        wanted: The segments.
        having: The segments of each host.
        loads: The load of each host.

    Returns:
        The segments that each of the chosen hosts answers for.

    Raises:
        ValueError: Nobody has one of the segments.
    """
    chosen, left = [], wanted
    # What a host adds only gets less, so an old price is a lower bound: only the cheapest is looked at again.
    prices = [
        (loads[host] / more, -more, host)
        for host, own in having.items()
        if (more := (own & wanted).bit_count())
    ]
    heapify(prices)
    while left:
        if not prices:
            msg = f"no host has the segments {left:b}"
            raise ValueError(msg)
        _, before, host = prices[0]
        more = (having[host] & left).bit_count()
        if more == -before:
            heappop(prices)
            chosen.append(host)
            left &= ~having[host]
        elif more:
            heapreplace(prices, (loads[host] / more, -more, host))
        else:
            heappop(prices)
    answers, left = {}, wanted
    for host in sorted(chosen, key=lambda own: (loads[own], own)):
        answers[host] = having[host] & left
        left &= ~having[host]
    return {host: own for host, own in sorted(answers.items()) if own}
