"""Shedding in batch: a pilot job learns where results are, and the plan says what that makes it expect."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import replace

import numpy as np

from sparkshed.planner.buffering import buffering_of
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.dual import BINS, bins_of, mixture
from sparkshed.planner.dualling import DualAdapter
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.planner import Planned
from sparkshed.planner.shedding import Shedding, expectation, pilot_cuts, policy_of
from sparkshed.spark.batch import pilot
from sparkshed.spark.inputs import Inputs
from sparkshed.spark.sampling import Sample
from sparkshed.sql.predicate import Equality


def plan_shedding(planned: Planned, inputs: Inputs) -> Planned:
    """The plan with what it sheds, chosen from what a pilot job learns."""
    hint, physical = planned.logical.hint, planned.physical
    policy, budget = policy_of(hint), 1.0 if hint.budget is None else hint.budget
    shedding = Shedding(
        strategy=hint.strategy,
        budget=budget,
        policy=policy,
        graph=JoinGraph(len(planned.logical.names), planned.logical.linking),
        seed=hint.seed or 0,
        configuration=Configuration(physical.spec.orders, shred=policy.shred),
        buffering=buffering_of(hint, physical.layout.groups),
    )
    if budget >= 1:
        # Only the memory is limited, and there is nothing to learn for that in advance.
        seed = secrets.randbits(32) if hint.seed is None else hint.seed
        return replace(planned, physical=replace(physical, shedding=replace(shedding, seed=seed)))
    master = physical.layout.master
    cuts = pilot_cuts(planned.logical.statistics.streams[master])
    tally = pilot(replace(physical, shedding=shedding), inputs, cuts)
    if tally is not None:
        adapter = shedding.adapter(physical.spec)
        shedding = replace(shedding, configuration=adapter.adapt(tally, budget), prior=adapter.learned)
        rows = planned.logical.statistics.streams[master].rows
        expected = expectation(shedding, physical.spec, tally, master, rows)
        # Drawn once, so that Spark may compute the same plan again and get the same rows.
        seed = secrets.randbits(32) if hint.seed is None else hint.seed
        shedding = replace(shedding, expectation=expected, seed=seed)
    return replace(planned, physical=replace(physical, shedding=shedding))


def plan_rows(planned: Planned, sample: Sample) -> Planned:
    """The plan of a join over windows of rows; what it sheds first follows from the values in the sample."""
    hint, physical = planned.logical.hint, planned.physical
    shedding = Shedding(
        strategy=hint.strategy,
        budget=hint.budget or 1.0,
        policy=policy_of(hint),
        graph=JoinGraph(len(planned.logical.names), planned.logical.linking),
        seed=secrets.randbits(32) if hint.seed is None else hint.seed,
        configuration=Configuration(physical.spec.orders),
    )
    adapter = shedding.adapter(physical.spec)
    assert isinstance(adapter, DualAdapter)
    if shedding.budget < 1 and all(table.num_rows for table in sample.tables):
        configuration = adapter.adapt(_yields(planned, sample, adapter.match), shedding.budget)
        shedding = replace(shedding, configuration=configuration, speed=adapter.best.speed)
    return replace(planned, physical=replace(physical, shedding=shedding))


def _yields(planned: Planned, sample: Sample, match: float) -> Tally:
    """What rows of the sample would find among the last n rows of the other stream, by its values."""
    rows = planned.physical.spec.rows
    assert rows is not None
    equal = [p.form for p in planned.logical.predicates if isinstance(p.form, Equality)]
    values = []
    for stream, table in enumerate(sample.tables):
        keys = [form.left if form.left.stream == stream else form.right for form in equal]
        columns = [table.column(key.column).to_pylist() for key in keys]
        values.append(Counter(map(repr, zip(*columns, strict=True))))
    tally = Tally.empty(2, 0)
    for stream, (own, other) in enumerate((values, values[::-1])):
        direction, count = tally.directions[stream], own.total()
        met = [other[value] / other.total() for value in own]
        shares = mixture([number / count for number in own.values()], met, rows)
        bins, found = bins_of(np.arange(rows + 1.0)), np.arange(rows + 1.0)
        weights = count * shares
        direction.yields = np.stack(
            [np.bincount(bins, weights, BINS), np.bincount(bins, weights * found, BINS)]
        )
        direction.learned, direction.results = float(count), float((weights * found).sum())
        direction.work = match * direction.results
    return tally
