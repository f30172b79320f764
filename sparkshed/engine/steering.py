"""What share of the work a host does in one micro-batch, and where.

    decision ──▶ the whole batch in one go                 far from its limit
             ──▶ portion, portion, portion …               it may turn out to be too much
                     └──▶ plan of its own for the rest     it does

Before the first decision a host is on its own. With a fixed budget it plans after every portion. Where z
follows the load it joins everything, unless the batch would take so long that it is better not to wait for
its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf
from typing import Any

import pyarrow as pa

from sparkshed.engine.group import STEPS, portions
from sparkshed.engine.keeping import Manifest
from sparkshed.engine.pacing import ENOUGH, Progress
from sparkshed.engine.strategies.protocol import Strategy
from sparkshed.planner.adaptation import Adapter
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.streaming import Decision, StreamingPlan
from sparkshed.planner.wire import configuration_from_json, configuration_to_json

#: Portions of a batch where it is less, or more, sure than usual what it will take.
_MORE_STEPS, _FEWER_STEPS = 64, 4
#: A batch that is expected to take less than this share of its limit need not be watched.
_LIGHT = 0.25
#: The first decisions are made while windows fill, and say least of what the next batch will take.
_EARLY = 3


class Steering:
    """Configures the strategy of a host, before a batch and within it.

    Attributes:
        told: z at the start of the batch.
        tally: What all portions taught; None before the first one.
    """

    def __init__(
        self,
        plan: StreamingPlan,
        manifest: Manifest,
        strategy: Strategy,
        adapter: Adapter | None,
        decision: dict[str, Any] | None,
    ) -> None:
        """Follow the newest decision; before there is one, what the host planned for itself.

        Args:
            plan: The plan of the join.
            manifest: Of the host.
            strategy: To be configured.
            adapter: Plans for the host; None where it never does.
            decision: Of the driver, if there is a new one.
        """
        self._plan = plan
        self._manifest = manifest
        self._strategy = strategy
        self._adapter = adapter
        self._is_new = decision is not None
        if decision is not None:
            manifest.decision = decision
        self._most: float | None = None
        self._version = 0
        self._alone = manifest.decision is None
        if manifest.decision is not None:
            own = Decision.from_json(manifest.decision)
            self._most, self._version = own.most, own.version
            strategy.configure(own.configuration)
        elif manifest.own is not None:
            strategy.configure(configuration_from_json(manifest.own))
        self.told = strategy.configuration.throttle
        self.tally: Tally | None = None
        self._untaught: Tally | None = None
        self._progress = Progress((), inf, (), filling=False)

    def begin(self, rows: Mapping[int, pa.Table]) -> Iterator[Mapping[int, pa.Table]]:
        """The whole batch; where the host may plan for itself, portion by portion in the order of time."""
        counts, manifest = self._counts(rows), self._manifest
        if not self._plan.follows:
            limit = inf
        elif manifest.decision is None:
            limit = ENOUGH
        else:
            limit = inf if self._most is None else self._most * sum(counts)
        self._progress = Progress(counts, limit, manifest.effort, filling=manifest.sequence == 0)
        return portions(self._plan.spec, rows, self._steps) if self._adapter is not None else iter([rows])

    @property
    def _steps(self) -> int:
        if not self._plan.follows:
            return STEPS if self._alone else 1
        expected, decided = self._progress.expected(self.told), self._manifest.decision is not None
        lags = self._adapter is not None and self._adapter.lags and decided
        # As long as nobody knows what rows cost, or where it is too much, portions are small; not so small
        # that single rows, of which few are kept, may cost more than a portion should.
        most = STEPS if lags else _MORE_STEPS
        if expected is None or (self._alone and self._manifest.own is not None):
            return most
        if expected > 1:
            # They cost time of their own, so a batch that is hardly too much has fewer of them.
            return min(most, ceil(STEPS * expected)) if decided else most
        if self._is_new and self._version <= _EARLY:
            return STEPS
        # A new decision is watched, and hosts get one every few batches.
        return 1 if expected <= _LIGHT and not self._is_new else _FEWER_STEPS

    def go_on(self, portion: Mapping[int, pa.Table], efforts: Sequence[float]) -> None:
        """Plan for the rest of the batch, after a portion that took so much effort, by direction."""
        taught = self._strategy.take()
        self._progress.add(self._counts(portion), efforts, self._strategy.configuration.throttle)
        self.tally = _sum(self.tally, taught)
        if self._adapter is None or self._plan.shedding is None:
            return
        self._untaught = _sum(self._untaught, taught.copy())
        if not any(direction.rows for direction in self._untaught.directions):
            return
        budget = self._needed if self._plan.follows else self._promised
        if budget is not None:
            self._replan(self._adapter, budget)

    @property
    def _promised(self) -> float | None:
        """The budget that was promised, unless the driver sees to it."""
        assert self._plan.shedding is not None
        return self._plan.shedding.budget if self._manifest.decision is None else None

    @property
    def _needed(self) -> float | None:
        """The share of the work that the rest of the batch may have; None if it may go on as it does."""
        progress, now = self._progress, self._strategy.configuration.throttle
        decided = self._manifest.decision is not None
        budget = min(progress.budget(now), self.told if decided else 1.0)
        planned = self._alone and (decided or self._manifest.own is not None)
        enough = progress.is_close(now, budget) if planned else not progress.is_too_much(now)
        return None if progress.is_over or enough else budget

    def _replan(self, adapter: Adapter, budget: float) -> None:
        assert self._untaught is not None
        adapter.follow(self._strategy.configuration)
        configuration = adapter.adapt(self._untaught, budget, rows=self._progress.to_come)
        self._alone, self._untaught = True, None
        if self._manifest.decision is None:
            self._manifest.own = configuration_to_json(configuration)
        self._strategy.configure(configuration)

    def end(self) -> None:
        """Remember what rows cost, and what was taught and not needed for a plan."""
        self._manifest.effort = self._progress.per_row or self._manifest.effort
        if self._adapter is not None and self._untaught is not None and self._plan.follows:
            self._adapter.learn(self._untaught)

    @property
    def throttle(self) -> float:
        """The share of the work that was done."""
        if not self._alone:
            return self.told
        full = self._adapter.full_per_row() if self._adapter is not None and self._adapter.lags else None
        if full is None or self.tally is None or self._progress.share >= 1:
            return self._progress.share
        # Windows hold what was kept before, so the shares of rows that were kept say little.
        done = sum(own.work for own in self.tally.directions)
        whole = sum(own.rows * cost for own, cost in zip(self.tally.directions, full, strict=True))
        return min(1.0, done / whole) if 0 < done < whole else self._progress.share

    def _counts(self, rows: Mapping[int, pa.Table]) -> list[int]:
        return [rows[s].num_rows if s in rows else 0 for s, _ in enumerate(self._plan.spec.streams)]


def _sum(total: Tally | None, more: Tally) -> Tally:
    if total is None:
        return more
    total.add(more)
    return total
