"""Shedding in batch: a pilot job learns where results are, and the plan says what that makes it expect."""

from __future__ import annotations

import secrets
from dataclasses import replace

from sparkshed.planner.buffering import buffering_of
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.graph import JoinGraph
from sparkshed.planner.planner import Planned
from sparkshed.planner.shedding import Shedding, expectation, pilot_cuts, policy_of
from sparkshed.spark.batch import pilot
from sparkshed.spark.inputs import Inputs


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
