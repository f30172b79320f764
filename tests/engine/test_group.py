"""Groups of a batch join keep to their budget: what one portion of rows overspends, the next ones save."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkshed.engine import group
from sparkshed.engine.operator import JoinOperator
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import tables_of
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.shedding import Shedding
from sparkshed.workloads.cameras import Cameras

LAGS = {"aligned": (0, 0, 0), "nonaligned": (0, 3, 7)}


@pytest.fixture
def operators(monkeypatch):
    """Every operator that is made."""
    made = []

    class Seen(JoinOperator):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(group, "JoinOperator", Seen)
    return made


@pytest.mark.parametrize(
    ("strategy", "m", "lags", "indexed", "z"),
    [
        ("grubjoin", 3, "nonaligned", True, 0.1),
        ("grubjoin", 3, "nonaligned", True, 0.3),
        ("grubjoin", 2, "aligned", True, 0.1),
        ("grubjoin", 2, "aligned", False, 0.1),
        ("grubjoin", 3, "aligned", True, 0.7),
        ("adaptive", 2, "aligned", False, 0.1),
        ("adaptive", 2, "nonaligned", True, 0.1),
        ("adaptive", 2, "nonaligned", True, 0.6),
    ],
)
def test_a_group_keeps_to_its_budget(strategy, m, lags, indexed, z, operators):
    streams = dict(enumerate(tables_of(Cameras(LAGS[lags][:m], (2, 2, 30)[:m]), 80.0, 60.0, seed=0)))
    join = camera_join(m, window=10, basic=1, indexed=indexed)
    spec, policy = join.spec, Policy(fixed=True)
    shedding = Shedding(strategy, z, policy, join.graph, 0, Configuration(spec.orders, shred=policy.shred))
    rows = streams[0]
    stretches = [rows.slice(start * rows.num_rows // 8, 60) for start in (1, 3, 5, 7)]
    tally = group.pilot_group(spec, 0, {**streams, 0: pa.concat_tables(stretches)}, shedding, 0)
    configuration = shedding.adapter(spec).adapt(tally.copy(), z)
    shedding = Shedding(strategy, z, policy, join.graph, 0, configuration, tally)
    work = []
    for own in (shedding, None):
        for _ in group.join_group(spec, 0, streams, own, 1):
            pass
        work.append(operators[-1].statistics.work)
    shed, whole = work
    # A group has few portions, and its first one knows only what the pilot saw.
    assert shed == pytest.approx(z * whole, rel=0.1)
