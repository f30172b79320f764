"""What is expected of a configuration: its shares of the full join's work and of its results.

Each function is for one kind of strategy, and for rows of one stream, which do all the work in batch.
"""

from __future__ import annotations

import math

from sparkshed.planner.adaptive import AllSlices, selective
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.harvest.learning import Learned


def harvested(
    configuration: Configuration, learned: Learned, origin: int, slices: AllSlices
) -> tuple[float, float]:
    """For rows that harvest, and others that are shredded."""
    model = learned.model.directions[origin]
    work = found = 0.0
    for harvest, share in (
        (configuration.dear[origin], configuration.mix),
        (configuration.cheap[origin], 1 - configuration.mix),
    ):
        setting = learned.places(origin, harvest)
        full_work, full_found = model.cost(model.full_setting), model.output(model.full_setting)
        work += share * (model.cost(setting) / full_work if full_work else 1.0)
        found += share * (model.output(setting) / full_found if full_found else 1.0)
    shred = configuration.shred
    return (
        (1 - shred) * work + shred * configuration.throttle,
        (1 - shred) * found + shred * configuration.throttle,
    )


def kept(
    configuration: Configuration, learned: Learned, origin: int, slices: AllSlices
) -> tuple[float, float]:
    """For rows of which some are dropped."""
    keep, model = configuration.keep, learned.model.directions[origin]
    full = dropped = 0.0
    entering, left = 1.0, keep[origin]
    for target, hop in zip(configuration.orders[origin], model.hops, strict=True):
        full += entering * (hop.base + sum(hop.cost))
        dropped += entering * left * hop.base
        left *= keep[target]
        dropped += entering * left * sum(hop.cost)
        entering *= sum(hop.partials)
    return dropped / full if full else 1.0, math.prod(keep)


def selected(
    configuration: Configuration, learned: Learned, origin: int, slices: AllSlices
) -> tuple[float, float]:
    """For rows that select, and others that are processed fully."""
    shred = configuration.shred
    work, found = selective(configuration, learned, origin, slices)
    return (1 - shred) * work + shred, (1 - shred) * found + shred
