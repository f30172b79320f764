"""Choose the kernel of each hop: the index that finds candidates, and what is left to check."""

from __future__ import annotations

from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import BandKernel, EqualityKernel, Hop, Kernel, ScanKernel
from sparkshed.sql.predicate import Band, Equality, Predicate


def hop(plan: ShedJoin, joined: list[int], target: int) -> Hop:
    """The hop from the joined streams to the next one."""
    bound = frozenset(joined)
    ready = [p for p in plan.predicates if target in p.streams and p.streams <= bound | {target}]
    usable = ready + [
        i.predicate
        for i in plan.implied
        if target in i.predicate.streams and i.predicate.streams <= bound | {target}
    ]
    equalities = [p for p in usable if isinstance(p.form, Equality)]
    bands = [p for p in ready if isinstance(p.form, Band)]
    kernel: Kernel = ScanKernel()
    covered: list[Predicate] = []
    if equalities:
        keys, covered = _keys(equalities, target)
        kernel = EqualityKernel(keys)
    elif bands:
        best = min(bands, key=lambda p: _width(plan, p, joined, target))
        assert isinstance(best.form, Band)
        kernel = BandKernel(best.form)
        covered = [best] if best.form.exact else []
    checks = tuple(p for p in ready if p not in covered)
    return Hop(target, kernel, checks)


def _keys(equalities: list[Predicate], target: int) -> tuple[tuple[Equality, ...], list[Predicate]]:
    """One key part per target column; further equalities on the same column stay checks."""
    parts: dict[int, Equality] = {}
    covered = []
    for predicate in equalities:
        form = predicate.form
        assert isinstance(form, Equality)
        column = form.left if form.left.stream == target else form.right
        if column.column not in parts:
            parts[column.column] = form
            covered.append(predicate)
    return tuple(parts.values()), covered


def _width(plan: ShedJoin, predicate: Predicate, joined: list[int], target: int) -> tuple[int, float, str]:
    """Sort key: bands with two ends first, then those of the most selective pair."""
    form = predicate.form
    assert isinstance(form, Band)
    open_ends = (form.low is None) + (form.high is None)
    (other,) = predicate.streams - {target}
    sigma = plan.statistics.selectivity[other][target]
    return (open_ends, 1.0 if sigma is None else sigma, predicate.text)
