"""Expected rows and work, hop by hop (S_ij, N_ij and C of the cost model)."""

from __future__ import annotations

from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.kernels import Option, hop
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import Direction, Hop, HopEstimate, HopKey, KernelEstimate


def plan_direction(plan: ShedJoin, origin: int) -> tuple[Direction, tuple[HopEstimate, ...]]:
    """Kernels for each hop of the direction's order, and what they are expected to do.

    Fan-outs measured on a sample come first; otherwise the selectivities of the pairs are taken as
    independent.
    """
    fanouts = plan.statistics.fanouts[origin] if plan.statistics.fanouts else None
    probes = float(plan.statistics.streams[origin].rows)
    joined = [origin]
    hops: list[Hop] = []
    estimates = []
    for number, target in enumerate(plan.orders[origin]):
        window = window_rows(plan, origin, target)
        if fanouts is None:
            sigma = 1.0
            for other in joined:
                known = plan.statistics.selectivity[other][target]
                sigma *= 1.0 if known is None else known
        else:
            sigma = fanouts[number] / window if window else 0.0
        measured = 0.0 if fanouts is None else sigma
        chosen, options = hop(plan, joined, target, window, measured)
        partials = probes * window * sigma
        kernels = tuple(_estimate(option, window) for option in options)
        estimates.append(HopEstimate(window, sigma, probes, partials, kernels))
        hops.append(chosen)
        joined.append(target)
        probes = partials
    return Direction(origin, tuple(hops)), tuple(estimates)


def hop_table(plan: ShedJoin) -> dict[HopKey, Hop]:
    """The hops of every order that the join graph allows, for orders that change while the join runs."""
    graph = JoinGraph(len(plan.names), plan.linking)
    hops: dict[HopKey, Hop] = {}

    def extend(joined: list[int]) -> None:
        for target in graph.next_streams(joined):
            key = (joined[0], frozenset(joined), target)
            if key not in hops:
                hops[key], _ = hop(plan, joined, target, window_rows(plan, joined[0], target))
                extend([*joined, target])

    for origin in range(len(plan.names)):
        extend([origin])
        # Rows may try any stream first, to learn how selective that is.
        for target in range(len(plan.names)):
            if target != origin and graph.linked(origin, target):
                key = (origin, frozenset([origin]), target)
                hops.setdefault(key, hop(plan, [origin], target, window_rows(plan, origin, target))[0])
    return hops


def _estimate(option: Option, window: float) -> KernelEstimate:
    return KernelEstimate(option.kernel, len(option.checks), option.touched * window, option.cost)


def window_rows(plan: ShedJoin, origin: int, target: int) -> float:
    """Rows of the target within the time range of one probing row of the origin."""
    statistics = plan.statistics.streams[target]
    before, after = plan.closed.at[origin][target], plan.closed.at[target][origin]
    if before is None or after is None:
        return float(statistics.rows)
    seconds = max(0, before + after) / 1_000_000
    return min(float(statistics.rows), statistics.rate * seconds)


def work(plan: ShedJoin, origin: int) -> float:
    """Expected cost of joining everything from one direction, results included."""
    _, estimates = plan_direction(plan, origin)
    probing = sum(e.probes * e.kernels[0].cost for e in estimates)
    return plan.statistics.streams[origin].rows + probing + estimates[-1].partials
