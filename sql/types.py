"""Spark's data types by their simple names (`int`, `decimal(10,2)`, `array<string>`)."""

from __future__ import annotations

import re

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
FRACTIONAL = ("float", "double")
TIMES = ("timestamp", "timestamp_ntz", "date")

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def decimal_of(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type.

    >>> decimal_of("decimal(10,2)")
    (10, 2)
    >>> decimal_of("double") is None
    True
    """
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def is_integral(type_: str) -> bool:
    """Whether the type holds whole numbers."""
    return type_ in INTEGRAL


def is_numeric(type_: str) -> bool:
    """Whether the type is a number of any kind."""
    return type_ in INTEGRAL or type_ in FRACTIONAL or decimal_of(type_) is not None


def is_day_time(type_: str) -> bool:
    """Whether the type is a day-time interval of any precision."""
    return type_.startswith("interval ") and "year" not in type_ and "month" not in type_


def is_whole(type_: str) -> bool:
    """Whether values are whole 64-bit numbers physically, so that bands on them are exact."""
    return is_integral(type_) or type_ in TIMES or is_day_time(type_)
