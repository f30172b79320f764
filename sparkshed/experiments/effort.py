"""What a decision costs on the virtual clock.

A decision looks at candidates: settings that a chooser weighs against each other, and sums that scores
are made of. Each is taken to cost as much as one comparison per hop of a direction. The counts follow
from the algorithms, not from a clock, so runs stay exact:

    greedy      m(m-1) candidates for each slice taken, as in the paper: O(n·m⁴) units
    lagrange    n slices for each of the at most n tails of the next hop, in each direction and hop
    exhaustive  nᵐ⁻¹ settings of each direction, then their frontiers
    scores      n per pair from pairwise histograms; n·2n from one histogram per stream, a convolution
"""

from __future__ import annotations

from sparkshed.planner.adaptation import Policy
from sparkshed.planner.harvest.model import Choice, JoinModel
from sparkshed.planner.harvesting import HarvestAdapter


def effort_of(adapter: HarvestAdapter, policy: Policy) -> float:
    """Work units of the adapter's last decision; none if everything is probed."""
    if adapter.expected is None or adapter.configuration.throttle >= 1:
        return 0.0
    learned, choice = adapter.expected
    return effort(learned.model, choice, policy)


def effort(model: JoinModel, choice: Choice, policy: Policy) -> float:
    """Work units of one choice, and of the scores behind it."""
    hops = [[len(hop.cost) for hop in direction.hops] for direction in model.directions]
    pairs = sum(len(own) for own in hops)
    per_candidate = max(len(own) for own in hops)
    scores = sum(2 * n * n if policy.per_stream else n for own in hops for n in own)
    return per_candidate * (_candidates(hops, pairs, choice, policy.chooser) + scores)


def _candidates(hops: list[list[int]], pairs: int, choice: Choice, chooser: str) -> float:
    taken = sum(len(slices) for direction in choice.dear for slices in direction)
    every = sum(sum(own) for own in hops)
    if chooser == "lagrange":
        return float(
            sum(own[-1] + sum(n * after for n, after in zip(own, own[1:], strict=False)) for own in hops)
        )
    if chooser == "greedy":
        return float(taken * pairs)
    if chooser == "greedy_reverse":
        return float((every - taken) * pairs)
    if chooser == "greedy_double":
        return float(min(taken, every - taken) * pairs)
    total = 0.0
    for own in hops:
        settings = 1.0
        for n in own:
            settings *= n
        total += settings
    return total
