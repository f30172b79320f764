"""Close the time bounds, and refuse pairs that have none."""

from __future__ import annotations

from dataclasses import replace

from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.bounds import BoundMatrix


def closed_bounds(block: JoinBlock) -> BoundMatrix:
    """The closed matrix of a block; raises when two streams have no bound, unless windows are of rows."""
    matrix = BoundMatrix.close(len(block.streams), block.bounds)
    if block.hint.rows is None:
        matrix.check(block.names, [stream.time_text for stream in block.streams])
    return matrix


def close_bounds(plan: ShedJoin) -> ShedJoin:
    """Every later rule reads windows and retention from the closed matrix."""
    return replace(plan, bounds=closed_bounds(plan.block))
