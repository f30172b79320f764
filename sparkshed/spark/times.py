"""Times between Spark and the planner: microseconds as SQL literals, and back."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column

_DAY = 86_400_000_000
_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST = (datetime.datetime(1, 1, 1) - _EPOCH) // datetime.timedelta(microseconds=1)
_LAST = (datetime.datetime(9999, 12, 31) - _EPOCH) // datetime.timedelta(microseconds=1)


def at_or_after(column: Column, micros: int, type_: str) -> Column:
    """Whether a time column is at or after an instant; instants beyond all dates are clipped."""
    micros = min(max(micros, _FIRST), _LAST)
    if type_ == "timestamp":
        return column >= F.expr(f"timestamp_micros({micros})")
    if type_ == "date":
        return column >= F.lit(datetime.date(1970, 1, 1) + datetime.timedelta(days=-(-micros // _DAY)))
    moment = _EPOCH + datetime.timedelta(microseconds=micros)
    return column >= F.expr(f"TIMESTAMP_NTZ '{moment.isoformat(sep=' ')}'")


def segment_of(column: Column, cuts: Sequence[int], type_: str, shift: int = 0) -> Column:
    """Number of cuts, each moved by `shift`, at or before the time: a balanced tree of comparisons."""
    if not cuts:
        return F.lit(0)

    def tree(first: int, last: int) -> Column:
        if first == last:
            return F.lit(first)
        middle = (first + last) // 2
        later = at_or_after(column, cuts[middle] + shift, type_)
        return F.when(later, tree(middle + 1, last)).otherwise(tree(first, middle))

    return tree(0, len(cuts))


def micros_of(value: object, type_: str) -> int:
    """Microseconds of a collected physical value."""
    assert isinstance(value, int)
    return value * _DAY if type_ == "date" else value
