"""Times between Spark and the planner: microseconds as SQL literals, and back."""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column

_DAY = 86_400_000_000
_LARGEST = 2**63 - 1


def at_or_after(column: Column, micros: int, type_: str) -> Column:
    """Whether a time column is at or after an instant, whatever the year."""
    micros = min(max(micros, -_LARGEST), _LARGEST)
    if type_ == "timestamp":
        return column >= F.expr(f"timestamp_micros({micros})")
    if type_ == "date":
        return column >= F.expr(f"date_add(DATE '1970-01-01', {-(-micros // _DAY)})")
    days, rest = divmod(micros, _DAY)
    interval = f"make_dt_interval({days}, 0, 0, {rest // 1_000_000}.{rest % 1_000_000:06d})"
    return column >= F.expr(f"TIMESTAMP_NTZ '1970-01-01 00:00:00' + {interval}")


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
