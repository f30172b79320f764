"""The strategies that shed load, by name: all that the planner and EXPLAIN know of them.

A new one needs an entry here, one in `sparkshed.engine.strategies.registry`, and its name in
`sparkshed.sql.options`; nothing else asks for names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkshed.planner.adaptation import Adapter, Policy
from sparkshed.planner.adaptive import AdaptiveAdapter, AllSlices
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dropping import DropAdapter
from sparkshed.planner.dualling import DualAdapter
from sparkshed.planner.expecting import harvested, kept, selected
from sparkshed.planner.harvest.learning import Learned
from sparkshed.planner.harvesting import HarvestAdapter
from sparkshed.planner.picture import dual_lines, harvest_lines, keep_lines, select_lines

if TYPE_CHECKING:
    from sparkshed.planner.physical import ShedJoinExec

Draw = Callable[["ShedJoinExec", Sequence[str]], Iterator[str]]
Expect = Callable[[Configuration, Learned, int, AllSlices], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of strategy.

    Attributes:
        adapter: Chooses configurations between micro-batches.
        expect: The shares of work and results that a configuration should come to; None without a pilot.
        draw: Lines of EXPLAIN for what a plan sheds.
        control: Words of EXPLAIN for how a streaming join adapts.
        most_streams: Streams that it joins at most.
    """

    adapter: type[Adapter]
    expect: Expect | None
    draw: Draw
    control: Callable[[Policy], str]
    most_streams: int | None = None


def _harvest(policy: Policy) -> str:
    return f"harvest={policy.chooser}, shred={policy.shred:g}"


def _keep(policy: Policy) -> str:
    return f"keep=best shares, shred={policy.shred:g}"


def _select(policy: Policy) -> str:
    return f"adaptations={','.join(policy.adaptations)}, shred={policy.shred:g}"


KINDS: dict[str, Kind] = {
    "grubjoin": Kind(HarvestAdapter, harvested, harvest_lines, _harvest),
    "randomdrop": Kind(DropAdapter, kept, keep_lines, _keep),
    "adaptive": Kind(
        AdaptiveAdapter,
        selected,
        select_lines,
        _select,
        most_streams=2,
    ),
    "dual": Kind(
        DualAdapter, None, dual_lines, lambda policy: "k_r and k_f by the yields of rows", most_streams=2
    ),
}
