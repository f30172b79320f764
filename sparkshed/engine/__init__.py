"""A micro-batch multi-way windowed join in numpy and Arrow. It knows nothing about Spark."""

from sparkshed.engine.errors import EngineError, EvaluationError, NullTimeError
from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.statistics import DirectionCounters, Statistics, StreamCounters

__all__ = [
    "DirectionCounters",
    "EngineError",
    "EvaluationError",
    "JoinOperator",
    "NullTimeError",
    "Statistics",
    "StreamCounters",
]
