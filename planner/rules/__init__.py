"""The logical rules, in the order they run."""

from __future__ import annotations

from collections.abc import Callable

from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.rules.check_runnable import check_runnable
from sparkshed.planner.rules.choose_basic import choose_basic
from sparkshed.planner.rules.choose_orders import choose_orders
from sparkshed.planner.rules.close_bounds import close_bounds
from sparkshed.planner.rules.imply_equalities import imply_equalities
from sparkshed.planner.rules.merge_bands import merge_bands

Rule = Callable[[ShedJoin], ShedJoin]

RULES: tuple[Rule, ...] = (
    close_bounds,  # first: everything below reads windows from the closed matrix
    imply_equalities,  # before orders: implied links are links
    merge_bands,  # before kernels are chosen: a band with both ends is one index
    choose_basic,  # needs the windows
    choose_orders,  # needs all links
    check_runnable,  # last: judges the finished plan
)

__all__ = ["RULES", "Rule"]
