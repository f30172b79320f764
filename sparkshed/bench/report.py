"""Rows of a benchmark as plain values and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast


class Record:
    """What every row of a benchmark, a dataclass, has."""

    __slots__ = ()

    def as_dict(self) -> dict[str, object]:
        """The row as plain values."""
        return asdict(cast("Any", self))


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows under each other, without columns that are empty in all of them; a row may lack some.

    >>> print(table([{"engine": "spark", "seconds": 4.0, "note": None}, {"engine": "polars", "rows": 7}]))
    engine  seconds  rows
    spark     4.000
    polars              7
    """
    known = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in known if any(row.get(name) is not None for row in rows)]
    lines = [names, *([_cell(name, row.get(name)) for name in names] for row in rows)]
    left = [all(isinstance(row.get(name), str | None) for row in rows) for name in names]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shape = "  ".join(f"{{:{'<' if text else '>'}{width}}}" for text, width in zip(left, widths, strict=True))
    return "\n".join(shape.format(*line).rstrip() for line in lines)


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3f}" if "seconds" in name else f"{value:.2f}"
    return str(value)
