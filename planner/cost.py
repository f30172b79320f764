"""Expected rows and work, hop by hop (S_ij, N_ij and C of the cost model)."""

from __future__ import annotations

from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import HopEstimate


def direction_estimates(plan: ShedJoin, origin: int) -> tuple[HopEstimate, ...]:
    """Estimates for each hop of the direction's order.

    Fan-outs measured on a sample come first; otherwise the selectivities of the pairs are taken as
    independent.
    """
    fanouts = plan.statistics.fanouts[origin] if plan.statistics.fanouts else None
    partials = float(plan.statistics.streams[origin].rows)
    joined = [origin]
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
        partials *= window * sigma
        estimates.append(HopEstimate(window, sigma, partials))
        joined.append(target)
    return tuple(estimates)


def window_rows(plan: ShedJoin, origin: int, target: int) -> float:
    """Rows of the target within the time range of one probing row of the origin."""
    statistics = plan.statistics.streams[target]
    before, after = plan.closed.at[origin][target], plan.closed.at[target][origin]
    if before is None or after is None:
        return float(statistics.rows)
    seconds = max(0, before + after) / 1_000_000
    return min(float(statistics.rows), statistics.rate * seconds)


def work(plan: ShedJoin, origin: int) -> float:
    """Work units of joining everything from one direction: candidates and results."""
    estimates = direction_estimates(plan, origin)
    return plan.statistics.streams[origin].rows + sum(e.partials for e in estimates) + estimates[-1].partials
