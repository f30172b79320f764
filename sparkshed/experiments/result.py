"""What an experiment is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Contradiction(Exception):
    """A run contradicts itself, or what the experiment is there to show."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run an experiment.

    Attributes:
        quick: Take few points and short runs, for a look and for tests.
        seed: Of streams and of random choices.
        data: A file with streams to use instead of generated ones.
        key: The column of it that is joined.
        streams: The streams of it that are joined.
        progress: Is told how many parts of how many are done, and what comes next.
    """

    quick: bool = False
    seed: int = 0
    data: Path | None = None
    key: str | None = None
    streams: tuple[str, ...] | None = None
    progress: Callable[[int, int, str], None] = lambda done, total, label: None

    def repeats(self, count: int) -> list[Settings]:
        """The same with this seed and those after it, to be averaged over; a quick run has one."""
        return [replace(self, seed=self.seed + k) for k in range(1 if self.quick else count)]


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of an experiment, what it was run with, and the few numbers that matter."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    headline: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return {"name": self.name, "params": self.params, "rows": self.rows, "headline": self.headline}


def require(holds: bool, message: str) -> None:
    """Refuse to report what cannot be true."""
    if not holds:
        raise Contradiction(message)
