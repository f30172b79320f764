"""Streams out of the ordinary: every strategy sheds a part of the exact answer, and knows what it misses."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

import sparkshed
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.strategies.adaptive import Adaptive
from sparkshed.engine.strategies.exact import Exact
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.randomdrop import RandomDrop
from sparkshed.experiments import harness
from sparkshed.experiments.harness import Forced, Load, simulate
from sparkshed.experiments.joins import camera_join
from sparkshed.experiments.output import phase_tables, tables_of
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.adaptive import AdaptiveAdapter
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dropping import DropAdapter
from sparkshed.planner.harvesting import HarvestAdapter
from sparkshed.planner.strategies import KINDS
from sparkshed.workloads.cameras import Cameras, CameraStream, Phase, camera_table

CAMERAS = Cameras((0, 1.5, 3.5), (2, 2, 20))
STILL = Phase(5, 60.0, CAMERAS)
STRATEGIES = {
    "grubjoin": (GrubJoin, HarvestAdapter),
    "randomdrop": (RandomDrop, DropAdapter),
    "adaptive": (Adaptive, AdaptiveAdapter),
}


def rows_at(*times):
    return camera_table(CameraStream(np.array(times, dtype=float), np.zeros(len(times))))


def many(m):
    return tables_of(Cameras(tuple(0.3 * i for i in range(m)), (2,) * m), 12.0, 10.0, seed=2)


#: Streams, their seconds, and how their join differs.
CASES = {
    "a stream goes silent": (
        lambda: phase_tables([STILL, Phase(7, (60.0, 0.0, 60.0), CAMERAS), STILL], seed=1),
        17,
        {},
    ),
    "rates jump by 100": (
        lambda: phase_tables([Phase(5, 4.0, CAMERAS), Phase(0.6, 400.0, CAMERAS), STILL], seed=1),
        11,
        {},
    ),
    "a stream without any row": (lambda: phase_tables([Phase(8, (60.0, 0.0, 60.0), CAMERAS)], seed=1), 8, {}),
    "no rows at all": (lambda: [rows_at()] * 3, 5, {}),
    "one row": (lambda: [rows_at(1.0), rows_at(), rows_at()], 5, {}),
    "one row each": (lambda: [rows_at(1.0)] * 3, 5, {}),
    "all rows at one instant": (lambda: [rows_at(*[1.0] * 30)] * 3, 5, {}),
    "selectivity 0": (lambda: phase_tables([STILL, STILL], seed=1), 10, {"eps": 0}),
    "selectivity 1": (
        lambda: phase_tables([Phase(8, 12.0, CAMERAS)], seed=1),
        8,
        {"eps": 1000, "window": 2},
    ),
    "b larger than the window": (lambda: phase_tables([STILL, STILL], seed=1), 10, {"basic": 30}),
    "two streams": (lambda: many(2), 10, {"m": 2, "window": 2, "eps": 4}),
    "six streams": (lambda: many(6), 10, {"m": 6, "window": 2, "eps": 4}),
}


class Collecting(JoinOperator):
    """Keeps the results, each as one number made of the row's ids."""

    def __init__(self, *args):
        super().__init__(*args)
        self.found = [np.empty(0, np.int64)]
        self.whole = Completeness()
        Collecting.last = self

    def process(self, batch):
        for chunk in super().process(batch):
            ids = [column.to_numpy() for column in chunk.columns]
            self.found.append(sum(own << (60 // len(ids) * k) for k, own in enumerate(ids)))
            yield chunk
        self.whole += self.completeness


def collected(case, strategy, load, adapter=None, throttle=None, most=6):
    """Results of a run on the virtual clock, its outcome, and its completeness; `most` limits the streams."""
    make, seconds, changes = CASES[case]
    m = min(most, changes.get("m", 3))
    join = camera_join(**{"window": 5, "basic": 0.5, **changes, "m": m})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness, "JoinOperator", Collecting)
        # A second more than the rows take, so that the last ones are joined, too.
        outcome = simulate(
            join, make()[:m], load(seconds + 1), strategy(join), adapter and adapter(join), throttle=throttle
        )
    return np.concatenate(Collecting.last.found), outcome, Collecting.last.whole


@cache
def exact(case, most):
    found, outcome, _ = collected(
        case,
        lambda join: Exact(Configuration(join.spec.orders)),
        lambda s: Load(seconds=s, warm_up=0, buffer=30),
        most=most,
    )
    return np.sort(found), outcome.work_rate


def shedding(case, name, capacity, throttle=None):
    kind, adapting = STRATEGIES[name]
    policy = Policy(adapt=1.0)

    def start(join):
        return Configuration(join.spec.orders, shred=policy.shred)

    return collected(
        case,
        lambda join: kind(start(join), np.random.default_rng(4)),
        lambda s: Load(capacity, seconds=s, warm_up=0, adapt=1.0, tick=0.1, buffer=30),
        lambda join: adapting(start(join), join.spec.slices, join.graph, policy).adapt,
        throttle,
        most_streams(name),
    )


def most_streams(name):
    return KINDS[name].most_streams or 6


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("case", CASES)
def test_under_load_results_are_a_part_of_the_answer(case, name):
    whole, work = exact(case, most_streams(name))
    found, outcome, completeness = shedding(case, name, max(1.0, work / 4))
    assert len(np.unique(found)) == len(found)
    assert np.isin(found, whole).all()
    assert completeness.delivered == len(found) == outcome.results
    low, high = completeness.interval
    assert 0 <= low <= completeness.share <= high <= 1
    assert all(0 < step.throttle <= 1 for step in outcome.steps)
    if case not in ("all rows at one instant", "one row each"):
        assert (len(found) > 0) == (len(whole) > 0)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("case", CASES)
def test_without_load_nothing_is_missed(case, name):
    whole, _ = exact(case, most_streams(name))
    found, outcome, completeness = shedding(case, name, np.inf, Forced([1.0]))
    assert outcome.lost == 0
    assert np.array_equal(np.sort(found), whole)
    assert completeness.share == completeness.interval[1] == 1
    assert completeness.delivered == len(whole)


BATCH = {
    "a stream without any row": ("id < 0", "abs(l.x - r.x) <= 1", ()),
    "one row": ("id = 7", "abs(l.x - r.x) <= 100", ()),
    "all rows at one instant": ("id < 40", "abs(l.x - r.x) <= 1", ("one",)),
    "selectivity 0, a silent hour": ("id < 60", "l.x + r.x < 0", ()),
    "selectivity 1, b larger than the window": ("id < 60", "l.x + r.x >= 0", ("basic=1 hour",)),
}


@pytest.fixture(scope="module")
def answers():
    """Spark's answers, by case; all strategies ask for the same."""
    return {}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("case", BATCH)
def test_batches_out_of_the_ordinary(spark, answers, case, name):
    rows, condition, options = BATCH[case]
    # Half of the rows come in one second, after an hour without any.
    at = "0" if "one" in options else "IF(id < 30, id * 1000, 3600000 + id * 30)"
    for view, where in (("l", rows), ("r", "id < 60")):
        spark.range(60).where(where).selectExpr(
            "id", f"timestamp_millis({at}) AS ts", "id * 7 % 11 AS x"
        ).createOrReplaceTempView(f"odd_{view}")
    text = (
        f"SELECT {{}} l.id, r.id FROM odd_l l JOIN odd_r r ON {condition} "
        "AND abs(l.ts - r.ts) <= INTERVAL 5 SECONDS"
    )
    if case not in answers:
        answers[case] = Counter(map(tuple, spark.sql(text.format("")).collect()))
    whole = answers[case]
    given = "".join(f", '{option}'" for option in options if "=" in option)
    for budget in (0.4, 1):
        hint = f"/*+ SHED({name}, 'budget={budget}', 'seed=3'{given}) */"
        found = Counter(map(tuple, sparkshed.query(spark, text.format(hint)).collect()))
        assert found <= whole
        assert budget < 1 or found == whole
