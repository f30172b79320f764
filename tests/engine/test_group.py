"""Groups of a batch join keep to their budget: what one portion of rows overspends, the next ones save."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from sparkshed.engine import group
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.pieces import Pieces
from sparkshed.experiments.budgets import CLOSE, POLICIES
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import tables_of
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.shedding import Shedding
from sparkshed.workloads.cameras import Cameras

#: Work units of a budget from which on the full work is known to 5 %.
ENOUGH = 400_000
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


def work_of(shedding, spec, streams, operators) -> int:
    for _ in group.join_group(spec, 0, streams, shedding, 1):
        pass
    return operators[-1].statistics.work


def over_budget(operators, policy, z, *, m=3, lags="nonaligned", indexed=True, rate=200) -> float:
    """What a group with a pilot spends, over its budget."""
    streams = dict(enumerate(tables_of(Cameras(LAGS[lags][:m], (2, 2, 30)[:m]), rate, 60, seed=0)))
    join = camera_join(m, window=10, basic=1, indexed=indexed)
    spec, policy = join.spec, replace(policy, fixed=True)
    shedding = Shedding("grubjoin", z, policy, join.graph, 0, Configuration(spec.orders, shred=policy.shred))
    rows = streams[0]
    stretches = [rows.slice(start * rows.num_rows // 8, rows.num_rows // 80) for start in (1, 3, 5, 7)]
    tally = group.pilot_group(spec, 0, {**streams, 0: pa.concat_tables(stretches)}, shedding, 0)
    configuration = shedding.adapter(spec).adapt(tally.copy(), z)
    shedding = replace(shedding, configuration=configuration, prior=tally)
    budget = z * work_of(None, spec, streams, operators)
    assert (budget >= ENOUGH) == (rate == 200)
    return work_of(shedding, spec, streams, operators) / budget


@pytest.mark.parametrize(
    ("z", "changes"),
    [
        pytest.param(0.05, {}, id="little"),
        pytest.param(0.3, {}, id="more"),
        pytest.param(0.1, {"indexed": False}, id="scans"),
        pytest.param(0.7, {"m": 2, "lags": "aligned"}, id="two streams"),
        pytest.param(0.1, {"m": 2, "lags": "aligned", "indexed": False}, id="two streams, scans"),
        pytest.param(0.7, {"lags": "aligned"}, id="aligned"),
    ],
)
def test_a_group_keeps_to_its_budget(z, changes, operators):
    assert over_budget(operators, Policy(), z, **changes) == pytest.approx(1, abs=CLOSE)


@pytest.mark.parametrize(
    ("m", "lags", "z"), [(3, "nonaligned", 0.1), (3, "nonaligned", 0.3), (2, "aligned", 0.1)]
)
def test_a_group_that_is_too_small_to_know_better_comes_near_its_budget(m, lags, z, operators):
    assert over_budget(operators, Policy(), z, m=m, lags=lags, rate=80) == pytest.approx(1, abs=2 * CLOSE)


@pytest.mark.parametrize("chooser", [name for name in POLICIES if name not in ("lagrange", "paper")])
def test_a_group_keeps_to_its_budget_with_every_chooser(chooser, operators):
    assert over_budget(operators, POLICIES[chooser], 0.1) == pytest.approx(1, abs=CLOSE)


def test_portions_that_spend_too_much_end_early():
    pieces = Pieces(10_000)
    ends = [end for _, end in pieces if pieces.is_due(spent=True) and pieces.adapt()]
    assert len(ends) == 63
    pieces = Pieces(10_000)
    fewer = [pieces.adapt() for _ in pieces if pieces.is_due(spent=False)]
    assert len(fewer) < 25
    # All rows are told of, and the last ones are all that is still to come.
    assert sum(rows for rows, _ in fewer) == 10_000 - 10_000 // 64
    assert fewer[-1][1] == 1


def test_a_group_of_no_rows_has_no_results(operators):
    streams = dict(enumerate(tables_of(Cameras((0, 0), (2, 2)), 20.0, 10.0, seed=0)))
    join = camera_join(2, window=10, basic=1)
    configuration = Configuration(join.spec.orders, shred=0.1)
    shedding = Shedding("grubjoin", 0.5, Policy(), join.graph, 0, configuration)
    assert work_of(shedding, join.spec, {**streams, 0: streams[0].slice(0, 0)}, operators) == 0
