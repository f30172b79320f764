"""Recognise time bounds and bands among the conjuncts, and choose each stream's time column."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sparkshed.sql.bounds import TimeBound
from sparkshed.sql.catalog import is_fixed_zone
from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.linear import Difference, differences, is_compact
from sparkshed.sql.types import TIMES, is_day_time, is_integral, is_numeric
from sparkshed.sql.typing import Typer

Number = int | float | Decimal

DAY = 86_400_000_000

#: Local clocks can be up to this far from a constant offset between any two instants.
ZONE_SLACK = 26 * 3_600_000_000


@dataclass(frozen=True)
class Gap:
    """`left - right <= high`, left and right being texts over one stream each.

    Times and whole numbers are exact (strictness is already in `high`); otherwise `high` is a guide, and
    `scale` is the sum of the constants without their signs: what SQL adds up is rounded at that size.
    """

    left_stream: int
    left: str
    right_stream: int
    right: str
    high: int | float
    type: str
    exact: bool
    scale: float = 0.0


@dataclass(frozen=True)
class Gaps:
    """All gaps that one conjunct stands for.

    `widened` tells that the local clock may shift within the bound, so Spark has to check the
    conjunct on the operator's output.
    """

    conjunct: Conjunct
    gaps: tuple[Gap, ...]
    kind: str
    widened: bool

    @property
    def is_time(self) -> bool:
        """Whether it compares times."""
        return self.kind == "time"


def read_gaps(conjunct: Conjunct, typer: Typer, time_zone: str, *, ansi: bool) -> Gaps | None:
    """The gaps a conjunct stands for, or None when it is no difference of two streams."""
    gaps, kinds, widened = [], set(), False
    for difference in differences(conjunct):
        types = [typer.type_of(conjunct.text(n)) for n in (difference.positive, difference.negative)]
        constant_texts = [(sign, conjunct.text(node)) for sign, node in difference.constants]
        constant_types = [typer.type_of(text) for _, text in constant_texts]
        if types[0] in TIMES and types[0] == types[1] and all(map(is_day_time, constant_types)):
            kinds.add("time")
            shifts = types[0] == "timestamp" and not is_fixed_zone(time_zone)
        elif all(map(is_numeric, types)) and all(map(is_numeric, constant_types)):
            if not ansi and all(map(is_integral, types)) and (difference.subtracts or constant_types):
                # Whole numbers wrap around without ANSI mode, so the values are in no range.
                return None
            kinds.add("number")
            shifts = False
        else:
            return None
        shift: list[Number] = []
        for sign, text in constant_texts:
            value = typer.value_of(text)
            if not isinstance(value, (int, float, Decimal)):
                return None
            if types[0] == "date" and value % DAY:
                # Spark adds hours to a date on the clock of the session's zone; whole days are whole.
                return None
            shift.append(sign * value)
        if shifts and (difference.subtracts or any(not -DAY < value < DAY for value in shift)):
            widened = True
        made = _gaps(conjunct, difference, types, shift)
        if made is None:
            return None
        gaps += made
    if len(kinds) != 1 or not gaps:
        return None
    if widened:
        gaps = [_widen(gap) for gap in gaps]
    loops = [gap for gap in gaps if gap.left_stream == gap.right_stream]
    if any(gap.high < 0 or gap.left != gap.right for gap in loops):
        return None
    kept = tuple(gap for gap in gaps if gap.left_stream != gap.right_stream)
    return Gaps(conjunct, kept, kinds.pop(), widened)


def _gaps(
    conjunct: Conjunct, difference: Difference, types: list[str], shift: list[Number]
) -> list[Gap] | None:
    whole = [value for value in shift if isinstance(value, int)]
    exact = all(t in TIMES or is_integral(t) for t in types) and len(whole) == len(shift)
    total = -sum(whole) if exact else -math.fsum(map(float, shift))
    if math.isnan(total):
        return None
    strict = 1 if difference.strict and exact else 0
    if types[0] == "date":
        if total % DAY:
            return None
        total //= DAY
    ends = []
    for node in (difference.positive, difference.negative):
        (stream,) = conjunct.streams(node) or frozenset()
        ends.append((stream, conjunct.text(node)))
    (left_stream, left), (right_stream, right) = ends
    scale = 0.0 if exact else math.fsum(abs(float(value)) for value in shift)
    forward = Gap(left_stream, left, right_stream, right, total - strict, types[0], exact, scale)
    if difference.operator != "=":
        return [forward]
    return [forward, Gap(right_stream, right, left_stream, left, -total, types[0], exact, scale)]


def _widen(gap: Gap) -> Gap:
    return Gap(
        gap.left_stream, gap.left, gap.right_stream, gap.right, gap.high + ZONE_SLACK, gap.type, gap.exact
    )


def choose_times(found: Sequence[Gaps], streams: int) -> list[str | None]:
    """Each stream's time column: the one that most bounds mention, the first among equals."""
    votes: list[Counter[str]] = [Counter() for _ in range(streams)]
    for gaps in found:
        for gap in gaps.gaps:
            votes[gap.left_stream][gap.left] += 1
            votes[gap.right_stream][gap.right] += 1
    return [counter.most_common(1)[0][0] if counter else None for counter in votes]


def as_bounds(gaps: Gaps, times: Sequence[str | None]) -> list[TimeBound] | None:
    """The conjunct as bounds between the chosen time columns; None when it speaks of others."""
    bounds = []
    for gap in gaps.gaps:
        if times[gap.left_stream] != gap.left or times[gap.right_stream] != gap.right:
            return None
        unit = DAY if gap.type == "date" else 1
        text = gaps.conjunct.plain_text()
        bounds.append(TimeBound(gap.left_stream, gap.right_stream, int(gap.high) * unit, text, gaps.widened))
    return bounds


def streams_without_plain_bound(found: Sequence[Gaps], streams: int) -> set[int]:
    """Streams that only greatest/least bound: there a NULL time would not exclude a row."""
    plain = set()
    for gaps in found:
        if not is_compact(gaps.conjunct):
            for gap in gaps.gaps:
                plain |= {gap.left_stream, gap.right_stream}
    return set(range(streams)) - plain
