"""Dual windows and their rivals over one trace, with the same rows and the same work.

The values of the rows are the same at every speed; what changes is how much work there is time for. A CPU of
C units per second leaves z = C / (V_s · F) of the full work F of each row. Dual windows run in the operator
with that budget. The rivals decide row by row, and their results are counted from the yields of the rows
that probe, which is what the operator finds for them. All are given the work that dual windows really did, at
the cost that a probe really had, and all are counted on the rows that left the aux windows in that time.

RAND drops rows in front at random; the others are joined in full. PROB lets in the rows that dual windows do,
and lets those probe whose value was most frequent so far in the other stream: of the rows that dual windows
joined in an interval, as many as by then there was work for. So it has to do without knowing what comes
later, as they have. OPT knows all yields beforehand, and lets the rows with the most results for their work
probe, whenever they come: of the rows that dual windows let in, or of any of several shares of all rows,
whichever gives most. So nobody who chooses among the rows that dual windows let in can have more. PROB with
hindsight chooses from all of its rows at once, when the run is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sparkshed.engine.arrays import Bools, Floats, Ints
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.dual import Dual
from sparkshed.engine.waiting import chances, standing
from sparkshed.experiments.joins import keyed_join
from sparkshed.experiments.traces import BATCH, Trace, opt
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import Costs, optimum
from sparkshed.planner.dualling import DualAdapter

#: The part of a run that counts: windows, aux windows and choices have settled by then.
_COUNTS = 0.4
#: Shares of rows that OPT tries to keep in front.
_KEEPS = np.geomspace(0.02, 1.0, 24)
_ORDERS = ((1,), (0,))


@dataclass(frozen=True, slots=True)
class Ran:
    """What dual windows did in the part of a run that counts.

    Attributes:
        results: Results.
        work: Work units.
        rows: How many rows came in that time.
        budget: Work units that there was time for.
        costs: Of rows and probes; with them, these rows take exactly this work.
        kept: Which rows of the trace were let in.
        counts: Which rows count: those that came from the first to the last one that left the aux windows.
        steps: For each interval, up to which of the rows that count rows were joined, and the work so far.
    """

    results: float
    work: float
    rows: float
    budget: float
    costs: Costs
    kept: Bools
    counts: Bools
    steps: Sequence[tuple[int, float]]

    @property
    def spent(self) -> float:
        """The work over what there was time for."""
        return self.work / self.budget


class Rivals:
    """All strategies over one trace, with the work of one CPU."""

    def __init__(self, tables: Sequence[pa.Table], rows: int, capacity: float, seed: int) -> None:
        """Look at the trace once.

        Args:
            tables: Two streams.
            rows: W.
            capacity: Work units per second.
            seed: Of random choices.
        """
        self.tables, self.trace, self.seed = tables, Trace.of(tables, rows), seed
        self.capacity, self.full = capacity, self.trace.full
        self._frequencies = self.trace.frequencies()
        self._kept = [self.trace.kept(keep, self.seed) for keep in _KEEPS.tolist()]
        self._yields = [self.trace.yields(kept) for kept in self._kept]

    def budget(self, speed: float) -> float:
        """z, where each stream has so many rows per second."""
        return min(1.0, self.capacity / (2 * speed * self.full))

    @property
    def optimum(self) -> float:
        """V_opt, rows per second of each stream, by the paper's formula."""
        return self.capacity / capacity_for(self.trace, 1.0)

    def dual(self, speed: float, *, of_kept: bool = True, rear_only: bool = False) -> Ran:
        """Dual windows in the operator."""
        join, configuration = keyed_join(self.trace.rows, indexed=False), Configuration(_ORDERS)
        strategy = Dual(configuration, np.random.default_rng(self.seed), of_kept=of_kept)
        adapter = DualAdapter(configuration, join.spec.slices, join.graph, Policy())
        adapter.knows(join.spec)
        adapter.of_kept, adapter.rear_only = of_kept, rear_only
        operator = JoinOperator(join.spec, strategy)
        streams, warm = self.trace.streams, (1 - _COUNTS) * len(self.trace.streams)
        kept, begin = np.zeros(len(streams), bool), [0, 0]
        results = work = rows = probes = joined = since = start = 0
        steps = []
        while start < len(streams):
            keep = strategy.configuration.keep
            part = streams[start : start + round(BATCH / min(keep))]
            batch = {}
            for s in (0, 1):
                own = start + np.flatnonzero(part == s)
                kept[own] = strategy.lets_in(s, begin[s] + np.arange(len(own)), keep[s])
                batch[s], begin[s] = self.tables[s].slice(begin[s], len(own)), begin[s] + len(own)
            before = operator.statistics.work
            found = sum(chunk.num_rows for chunk in operator.process(batch))
            operator.tidy()
            tally = strategy.take()
            joined += int(sum(own.joined for own in tally.directions))
            if start < warm:
                since = joined
            else:
                results, rows = results + found, rows + len(part)
                work += operator.statistics.work - before
                probes += int(sum(own.learned for own in tally.directions))
                steps.append((joined - since, float(work)))
            start += len(part)
            # Nobody knows what a probe of a full window costs before windows are full.
            full = start < 2 * self.trace.rows
            strategy.configure(adapter.adapt(tally, 1.0 if full else self.budget(speed)))
        counts = _span(kept, since, joined)
        update, probe, match = self.trace.costs.update, self.trace.costs.probe, self.trace.costs.match
        scan = (work - update * (joined - since) - match * results) / max(1, probes) - probe
        limit = rows * self.full * self.budget(speed)
        return Ran(results, work, rows, limit, Costs(scan, match, update, probe), kept, counts, steps)

    def rand(self, own: Ran) -> float:
        """Results where rows are dropped at random in front of the join."""
        everything = self._yields[-1][own.counts]
        share = own.work / (len(everything) * own.costs.full(float(everything.mean())))
        kept = self.trace.kept(min(1.0, share), self.seed)
        found = self.trace.yields(kept)[kept & own.counts]
        # What comes of a unit of work does not depend on how many there are.
        return float(found.sum()) * own.work / (len(found) * own.costs.full(float(found.mean())))

    def prob(self, own: Ran, *, hindsight: bool = False) -> float:
        """Results where rows probe whose value was frequent in the other stream."""
        place = np.zeros(len(own.kept))
        for s in (0, 1):
            mine = np.flatnonzero(own.kept & (self.trace.streams == s))
            # Frequencies grow with time; their share of all rows so far does not.
            score = (1e6 * self._frequencies[mine] / (mine + 1)).astype(np.int64)
            ends = np.arange(1, len(mine) + 1)
            begins = np.maximum(0, ends - self.trace.rows)
            lower, equal = standing(score, begins, ends)
            place[mine] = (lower + chances(self.seed, 1, mine) * equal) / (ends - begins)
        rows = np.flatnonzero(own.kept & own.counts)
        found, places = self.trace.yields(own.kept)[rows], place[rows]
        return chosen(found, places, own.costs, own.steps[-1:] if hindsight else own.steps)

    def opt(self, own: Ran) -> float:
        """The most results that any choice of rows that probe can have."""
        options = [(own.kept, self.trace.yields(own.kept)), *zip(self._kept, self._yields, strict=True)]
        return max(opt(found[own.counts], kept[own.counts], own.costs, own.work) for kept, found in options)

    def ideal(self, own: Ran) -> float:
        """Results of a CPU that is fast enough."""
        return float(self._yields[-1][own.counts].sum())


def _span(kept: Bools, first: int, last: int) -> Bools:
    """The rows from one that was let in to before another one, by their numbers among those."""
    numbers = np.cumsum(kept) - kept
    return np.asarray((numbers >= first) & (numbers < last))


def chosen(found: Ints, places: Floats, costs: Costs, steps: Sequence[tuple[int, float]]) -> float:
    """Results of the rows with the highest places of each interval, as many as there is work for by then.

    The last one of an interval counts in part, and what is left of the work is there for the next one.

    >>> costs = Costs(scan=9.0, match=0.0, update=1.0, probe=1.0)
    >>> found, places = np.array([5, 6, 7, 2]), np.array([0.9, 0.8, 0.1, 0.7])
    >>> chosen(found, places, costs, [(2, 12.0), (4, 29.0)])
    10.5
    >>> chosen(found, places, costs, [(4, 29.0)])
    12.0

    Args:
        found: The yield of each row.
        places: What is thought of each, among others.
        costs: Of rows and probes.
        steps: For each interval, up to which rows were joined, and the work up to then.
    """
    results = used = 0.0
    first = 0
    for last, work in steps:
        own = found[first:last][np.argsort(-places[first:last], kind="stable")]
        units = np.append(0.0, np.cumsum(costs.probe + costs.scan + costs.match * own))
        used += costs.update * (last - first)
        spent = min(max(0.0, work - used), float(units[-1]))
        results += float(np.interp(spent, units, np.append(0.0, np.cumsum(own))))
        used, first = used + spent, last
    return results


def capacity_for(trace: Trace, speed: float) -> float:
    """Work units per second with which V_opt is a given speed."""
    update = trace.costs.update
    return 2 * speed / optimum(trace.shares, 1 / (trace.full - update), 1 / update).speed
