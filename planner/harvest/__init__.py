"""Window harvesting: which slices of which windows each direction probes. Pure decisions, no Spark."""

from __future__ import annotations

from sparkshed.planner.harvest.choosers import CHOOSERS, choose
from sparkshed.planner.harvest.greedy import METRICS
from sparkshed.planner.harvest.model import Choice, DirectionModel, HopModel, JoinModel, Setting, paper_model
from sparkshed.planner.harvest.scores import pairwise_scores, per_stream_scores

__all__ = [
    "CHOOSERS",
    "METRICS",
    "Choice",
    "DirectionModel",
    "HopModel",
    "JoinModel",
    "Setting",
    "choose",
    "pairwise_scores",
    "paper_model",
    "per_stream_scores",
]
