"""Choose the kernel of each hop: the index that finds candidates, and what is left to check.

Every condition that an index serves makes an option, and comparing with every row is one too. The
option with the lowest expected cost for one probe wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkshed.planner.conditions import check_cost, rank, selectivity
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import (
    MOST_WINDOWS,
    BandKernel,
    EqualityKernel,
    Hop,
    Kernel,
    ScanKernel,
    SetKernel,
    VectorKernel,
    WeightedKernel,
)
from sparkshed.planner.statistics import IndexStatistics
from sparkshed.sql.predicate import Band, Equality, Overlap, Predicate, Similarity, WeightedOverlap

#: Costs in units of one comparison: looking a key up in one basic window, forming a candidate from an
#: index entry, counting what two sets share, one number of a vector, one pair of a block.
LOOKUP = 3.0
ENTRY = 1.0
SHARED = 3.0
NUMBER = 0.004
CELL = 0.1


@dataclass(frozen=True, slots=True)
class Option:
    """One way to make a hop.

    Attributes:
        kernel: The kernel.
        checks: Conditions that it leaves, cheapest and most selective first.
        touched: Share of the rows in the time range that the kernel touches.
        cost: Expected cost of one probe, in units of one comparison.
    """

    kernel: Kernel
    checks: tuple[Predicate, ...]
    touched: float
    cost: float


def hop(
    plan: ShedJoin, joined: list[int], target: int, window: float, matching: float = 0.0
) -> tuple[Hop, tuple[Option, ...]]:
    """The hop from the joined streams to the next one, and all options, the chosen one first.

    Args:
        plan: The logical plan.
        joined: Streams that are joined already.
        target: The stream to probe.
        window: Rows of the target within the time range of a probe.
        matching: Share of them that match; no kernel touches less.
    """
    found = sorted(_options(plan, joined, target, window, matching), key=lambda option: option.cost)
    return Hop(target, found[0].kernel, found[0].checks), tuple(found)


def _options(
    plan: ShedJoin, joined: list[int], target: int, window: float, matching: float
) -> Iterator[Option]:
    reach = frozenset(joined) | {target}
    ready = [p for p in plan.predicates if target in p.streams and p.streams <= reach]
    implied = [
        i.predicate for i in plan.implied if target in i.predicate.streams and i.predicate.streams <= reach
    ]
    pricing = _Pricing(plan, ready, window, _windows(plan, joined[0], target), matching)
    equalities = [p for p in (*ready, *implied) if isinstance(p.form, Equality)]
    if equalities:
        keys, covered = _keys(equalities, target)
        touched = 1.0
        for predicate in covered:
            touched *= selectivity(plan, predicate)
        yield pricing.option(EqualityKernel(keys), covered, IndexStatistics(touched), ENTRY)
    for together in _bands_by_column(ready, target):
        touched = 1.0
        for predicate in together:
            touched *= selectivity(plan, predicate)
        yield pricing.option(BandKernel(together), together, IndexStatistics(touched), ENTRY)
    for predicate in ready:
        yield from _single(plan, predicate, pricing)
    yield pricing.option(ScanKernel(), (), IndexStatistics(1.0), CELL)


def _single(plan: ShedJoin, predicate: Predicate, pricing: _Pricing) -> Iterator[Option]:
    """Options that use the index of one condition."""
    form = predicate.form
    known = plan.statistics.predicates.get(predicate)
    if isinstance(form, Overlap):
        for index in known.indexes if known else (IndexStatistics(0.1),):
            entry = ENTRY if index.subset == 1 else SHARED
            yield pricing.option(SetKernel(form, index.subset), [predicate], index, entry)
    elif isinstance(form, WeightedOverlap):
        index = known.indexes[0] if known else IndexStatistics(0.1)
        yield pricing.option(WeightedKernel(form, predicate), [predicate], index, ENTRY)
    elif isinstance(form, Similarity):
        width = known.width if known else 0.0
        index = IndexStatistics(1.0)
        yield pricing.option(VectorKernel(form, predicate), [predicate], index, CELL + width * NUMBER)


def _bands_by_column(ready: list[Predicate], target: int) -> list[tuple[Predicate, ...]]:
    """Bands on the same column of the target: they narrow one range."""
    found: dict[tuple[int, bool], list[Predicate]] = {}
    for predicate in ready:
        form = predicate.form
        if isinstance(form, Band):
            column = form.left if form.left.stream == target else form.right
            found.setdefault((column.column, form.exact), []).append(predicate)
    return [tuple(together) for together in found.values()]


@dataclass(frozen=True, slots=True)
class _Pricing:
    """What every option of one hop has in common."""

    plan: ShedJoin
    ready: list[Predicate]
    window: float
    windows: float
    matching: float

    def option(
        self, kernel: Kernel, covered: Iterable[Predicate], index: IndexStatistics, entry: float
    ) -> Option:
        done = list(covered)
        checks = sorted((p for p in self.ready if p not in done), key=lambda p: rank(self.plan, p))
        left, checking = 1.0, 0.0
        for check in checks:
            checking += left * check_cost(self.plan, check)
            left *= selectivity(self.plan, check)
        touched = max(index.touched, self.matching)
        cost = index.lookups * self.windows * LOOKUP + self.window * touched * (entry + checking)
        return Option(kernel, tuple(checks), touched, cost)


def _windows(plan: ShedJoin, origin: int, target: int) -> float:
    """Basic windows that the time range of a probe touches."""
    before, after = plan.closed.at[origin][target], plan.closed.at[target][origin]
    if before is None or after is None or plan.basic is None:
        return float(MOST_WINDOWS)
    return min(float(MOST_WINDOWS), max(0, before + after) / plan.basic + 1)


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
