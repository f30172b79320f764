"""Close the time bounds: those that others imply are known from here on."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.bounds import BoundMatrix


def closed_bounds(block: JoinBlock) -> BoundMatrix:
    """The closed matrix of a block."""
    return BoundMatrix.close(len(block.streams), block.bounds)


def close_bounds(plan: ShedJoin) -> ShedJoin:
    """Every later rule reads windows and retention from the closed matrix."""
    return replace(plan, bounds=closed_bounds(plan.block))
