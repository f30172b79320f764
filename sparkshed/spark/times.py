"""Times between Spark and the planner: microseconds as SQL literals, and back."""

from __future__ import annotations

from collections.abc import Sequence

_DAY = 86_400_000_000
_LARGEST = 2**63 - 1


def at_or_after(column: str, micros: int, type_: str) -> str:
    """SQL that says whether a time column is at or after an instant, whatever the year."""
    micros = min(max(micros, -_LARGEST), _LARGEST)
    if type_ == "timestamp":
        return f"{column} >= timestamp_micros({micros})"
    if type_ == "date":
        return f"{column} >= date_add(DATE '1970-01-01', {-(-micros // _DAY)})"
    days, rest = divmod(micros, _DAY)
    interval = f"make_dt_interval({days}, 0, 0, {rest // 1_000_000}.{rest % 1_000_000:06d})"
    return f"{column} >= TIMESTAMP_NTZ '1970-01-01 00:00:00' + {interval}"


def segment_of(column: str, cuts: Sequence[int], type_: str, shift: int = 0) -> str:
    """SQL for the number of cuts, each moved by `shift`, at or before the time.

    It is a balanced tree of comparisons:

    >>> segment_of("t", [5, 9], "timestamp")
    'if(t >= timestamp_micros(9), 2, if(t >= timestamp_micros(5), 1, 0))'
    """

    def tree(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        later = at_or_after(column, cuts[middle] + shift, type_)
        return f"if({later}, {tree(middle + 1, last)}, {tree(first, middle)})"

    return tree(0, len(cuts))


def micros_of(value: object, type_: str) -> int:
    """Microseconds of a collected physical value."""
    assert isinstance(value, int)
    return value * _DAY if type_ == "date" else value
