"""What one condition costs to check, and how many candidates it lets pass."""

from __future__ import annotations

from sparkshed.planner.logical import ShedJoin
from sparkshed.sql.expr import COLLECTIVE, Apply, Call, Expr
from sparkshed.sql.predicate import Band, Equality, Overlap, Predicate, Similarity, WeightedOverlap

#: Costs in units of one comparison: an operation on numbers, on values of other types, on whole
#: arrays or maps (for each of their elements too), and a Python function that does not say.
_NUMBERS = 0.3
_OBJECTS = 5.0
_COLLECTIVE = 3.0
_ELEMENT = 0.1
_PYTHON = 5.0

_OBJECT_TYPES = ("string", "binary", "array", "struct", "map")


def check_cost(plan: ShedJoin, predicate: Predicate) -> float:
    """Expected cost of one evaluation."""
    known = plan.statistics.predicates.get(predicate)
    return _cost(predicate.expr, known.width if known else 0.0)


def _cost(expr: Expr, width: float) -> float:
    if isinstance(expr, Apply):
        own = _PYTHON if expr.predicate.cost is None else expr.predicate.cost
    elif not isinstance(expr, Call):
        return 0.0
    elif expr.op in COLLECTIVE:
        own = _COLLECTIVE + width * _ELEMENT
    else:
        own = _OBJECTS if any(arg.type.startswith(_OBJECT_TYPES) for arg in expr.args) else _NUMBERS
    return own + sum(_cost(arg, width) for arg in expr.args)


def selectivity(plan: ShedJoin, predicate: Predicate) -> float:
    """Share of pairs in time that meet the condition: measured, or what is usual for its form."""
    if isinstance(predicate.expr, Apply) and predicate.expr.predicate.selectivity is not None:
        return predicate.expr.predicate.selectivity
    known = plan.statistics.predicates.get(predicate)
    if known is not None:
        return known.selectivity
    pair = sorted(predicate.streams)
    if len(pair) == 2:
        sigma = plan.statistics.selectivity[pair[0]][pair[1]]
        if sigma is not None and sum(p.streams == predicate.streams for p in plan.predicates) == 1:
            return sigma
    return usual_selectivity(predicate)


def usual_selectivity(predicate: Predicate) -> float:
    """Share of pairs in time that meet a condition of its form."""
    form = predicate.form
    if isinstance(form, Band):
        return 0.1 if form.low is not None and form.high is not None else 0.4
    if isinstance(form, Equality):
        return 0.05
    return 0.1 if isinstance(form, (Overlap, WeightedOverlap, Similarity)) else 0.5


def rank(plan: ShedJoin, predicate: Predicate) -> tuple[float, str]:
    """Sort key of checks: what is cheap and rejects much comes first."""
    rejected = max(1e-9, 1.0 - selectivity(plan, predicate))
    return check_cost(plan, predicate) / rejected, predicate.text
