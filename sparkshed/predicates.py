"""Python predicates: vectorised functions that SQL may call by name.

The registry belongs to the process. Sessions get the functions as UDFs, so that a name means the same
with the hint and without it.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sparkshed.sql.dialect import parse_fragment
from sparkshed.sql.errors import PredicateError, StatementError
from sparkshed.sql.expr import PythonPredicate

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_lock = threading.Lock()
_predicates: dict[str, PythonPredicate] = {}


def register_predicate(
    name: str,
    fn: Callable[..., Any],
    selectivity: float | None = None,
    cost: float | None = None,
) -> None:
    """Make a vectorised Python function known to SQL as `name`.

    It gets one array for each argument, all of the same length: numbers, booleans, dates, timestamps
    (in UTC) and day-time intervals as numpy arrays, anything else as pyarrow arrays. Rows in which an
    argument is NULL are not passed and give NULL. It returns a boolean numpy or pyarrow array of that
    length. Registering a name again replaces its function, also in the sessions that have it.

        register_predicate("near", lambda ax, bx: np.abs(ax - bx) < 1, selectivity=0.01)
        spark.sql("SELECT /*+ SHED(exact) */ … ON near(a.x, b.x) AND …")

    Args:
        name: How SQL calls it, in any case; not the name of a function that Spark has.
        fn: The function. It must be deterministic, and is sent to the workers by cloudpickle.
        selectivity: Share of the pairs that it is expected to accept. Measured on a sample when left out.
        cost: What one evaluation costs, in units of a comparison.

    Raises:
        PredicateError: The name, the function or a number is not usable.
    """
    predicate = _checked(name, fn, selectivity, cost)
    # Spark is imported only here, so that predicates can be registered before it is needed.
    from sparkshed.spark.functions import check_name, install_everywhere

    check_name(name)
    with _lock:
        _predicates[name.lower()] = predicate
    install_everywhere()


def find_predicate(name: str) -> PythonPredicate | None:
    """The predicate that SQL calls by the name."""
    return _predicates.get(name.lower())


def forget_predicate(name: str) -> None:
    """Take the predicate out of the registry."""
    with _lock:
        _predicates.pop(name.lower(), None)


def registered() -> list[PythonPredicate]:
    """All predicates, in the order in which their names were first registered."""
    with _lock:
        return list(_predicates.values())


def _checked(name: object, fn: object, selectivity: object, cost: object) -> PythonPredicate:
    if not isinstance(name, str) or _IDENTIFIER.fullmatch(name) is None:
        msg = (
            f"a predicate's name is letters, digits and underscores, and no digit first, but {name!r} was "
            f"given. Write for example register_predicate('near', fn)."
        )
        raise PredicateError(msg)
    if not _is_callable_in_sql(name):
        msg = (
            f"`{name}` is a word of SQL, so {name}(…) would not call a predicate. "
            f"Choose another name, for example `is_{name.lower()}`."
        )
        raise PredicateError(msg)
    if not callable(fn):
        msg = (
            f"predicate `{name}` needs a function, but got a value of type {type(fn).__qualname__}. "
            f"Give one that takes arrays, for example lambda x, y: abs(x - y) < 1."
        )
        raise PredicateError(msg)
    share = _number(selectivity)
    if selectivity is not None and not (share is not None and 0 < share <= 1):
        msg = (
            f"the selectivity of predicate `{name}` is a number above 0 and at most 1, but {selectivity!r} "
            f"was given. Write 0.01 if it accepts one pair in a hundred, or leave it out to have it measured."
        )
        raise PredicateError(msg)
    units = _number(cost)
    if cost is not None and not (units is not None and 0 < units < math.inf):
        msg = (
            f"the cost of predicate `{name}` is a number above 0, but {cost!r} was given. "
            f"Write 10 if it costs as much as ten comparisons, or leave it out."
        )
        raise PredicateError(msg)
    return PythonPredicate(name, fn, share, units)


def _number(value: object) -> float | None:
    """The value as a number, unless it is something else."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_callable_in_sql(name: str) -> bool:
    """Whether SQL reads `name(…)` as the call of a function."""
    try:
        tree = parse_fragment(f"SELECT 1 FROM a WHERE {name}(a.x, a.y)", lambda word: word == name)
    except StatementError:
        return False
    return isinstance(tree.args["where"].this, exp.Anonymous)
