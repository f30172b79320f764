"""Multi-way windowed stream joins on Spark that stay fast under overload.

The names below are imported when first used, so that `import sparkshed` stays light and
`sparkshed.sql` can be used without Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkshed.predicates import register_predicate
    from sparkshed.spark.session import disable, enable, explain, query
    from sparkshed.spark.streaming.driver import history, progress
    from sparkshed.sql.errors import (
        BoundError,
        HintError,
        JoinError,
        PlanError,
        PredicateError,
        ShedError,
        StatementError,
    )

__version__ = "0.1.0"

_EXPORTS = {
    "enable": "sparkshed.spark.session",
    "disable": "sparkshed.spark.session",
    "query": "sparkshed.spark.session",
    "explain": "sparkshed.spark.session",
    "progress": "sparkshed.spark.streaming.driver",
    "history": "sparkshed.spark.streaming.driver",
    "register_predicate": "sparkshed.predicates",
    "ShedError": "sparkshed.sql.errors",
    "HintError": "sparkshed.sql.errors",
    "StatementError": "sparkshed.sql.errors",
    "JoinError": "sparkshed.sql.errors",
    "BoundError": "sparkshed.sql.errors",
    "PredicateError": "sparkshed.sql.errors",
    "PlanError": "sparkshed.sql.errors",
}

__all__ = [
    "BoundError",
    "HintError",
    "JoinError",
    "PlanError",
    "PredicateError",
    "ShedError",
    "StatementError",
    "__version__",
    "disable",
    "enable",
    "explain",
    "history",
    "progress",
    "query",
    "register_predicate",
]


def __dir__() -> list[str]:
    """All that is exported, used already or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import an exported name on first use."""
    if name not in _EXPORTS:
        msg = f"module 'sparkshed' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value
