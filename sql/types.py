"""Spark's data types by their simple names (`int`, `decimal(10,2)`, `array<string>`)."""

from __future__ import annotations

import re

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
FRACTIONAL = ("float", "double")
TIMES = ("timestamp", "timestamp_ntz", "date")

#: Types that the engine evaluates beside numbers and intervals; anything else is left to Spark.
_EVALUATED = ("boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "void")

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


def is_evaluated(type_: str) -> bool:
    """Whether the engine can compute with values of the type."""
    return is_numeric(type_) or type_ in _EVALUATED or is_day_time(type_)


def element_of(type_: str) -> str:
    """Type of the elements of an array type.

    >>> element_of("array<decimal(10,2)>")
    'decimal(10,2)'
    """
    if type_.startswith("array<"):
        return type_[len("array<") : -1]
    msg = f"not an array type: {type_}"
    raise ValueError(msg)


def entry_of(type_: str) -> tuple[str, str]:
    """Types of the keys and the values of a map type.

    >>> entry_of("map<struct<a:int,b:decimal(4,2)>,double>")
    ('struct<a:int,b:decimal(4,2)>', 'double')
    """
    depth = 0
    inner = type_[len("map<") : -1] if type_.startswith("map<") else ""
    for place, character in enumerate(inner):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            return inner[:place].strip(), inner[place + 1 :].strip()
    msg = f"not a map type: {type_}"
    raise ValueError(msg)
