"""Time bounds between streams and their closed difference-bound matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeBound:
    """`T_later - T_earlier <= micros`, and the text that says so.

    `widened` tells that the local clock may shift within the bound, so that it is wider than what it says.
    """

    later: int
    earlier: int
    micros: int
    text: str
    widened: bool = False


@dataclass(frozen=True, slots=True)
class BoundMatrix:
    """`at[i][k]` is the largest `T_i - T_k` of any result, in microseconds; None is unbounded.

    The matrix is closed: `a - b <= 5` and `b - c <= 3` imply `a - c <= 8`.
    """

    at: tuple[tuple[int | None, ...], ...]
    empty: bool = False

    @staticmethod
    def close(streams: int, bounds: Iterable[TimeBound]) -> BoundMatrix:
        """The closed matrix of some bounds (Floyd–Warshall).

        >>> BoundMatrix.close(3, [TimeBound(0, 1, 5, ""), TimeBound(1, 2, 3, "")]).at[0]
        (0, 5, 8)
        """
        at: list[list[int | None]] = [[0 if i == k else None for k in range(streams)] for i in range(streams)]
        for bound in bounds:
            known = at[bound.later][bound.earlier]
            if known is None or bound.micros < known:
                at[bound.later][bound.earlier] = bound.micros
        for middle in range(streams):
            for i in range(streams):
                for k in range(streams):
                    left, right, known = at[i][middle], at[middle][k], at[i][k]
                    if left is not None and right is not None and (known is None or left + right < known):
                        at[i][k] = left + right
        if any((at[i][i] or 0) < 0 for i in range(streams)):
            # No times satisfy the bounds, so no result exists; every pair says so.
            never = tuple(tuple(-1 if i != k else 0 for k in range(streams)) for i in range(streams))
            return BoundMatrix(never, empty=True)
        return BoundMatrix(tuple(map(tuple, at)))

    def window(self, stream: int) -> int | None:
        """Retention of a stream, `max_i w_ik`: how long a row can wait for the newest partner."""
        waits = [self.at[i][stream] for i in range(len(self.at)) if i != stream]
        if any(wait is None for wait in waits):
            return None
        return max([0, *(wait for wait in waits if wait is not None)])


def duration_text(micros: int | None) -> str:
    """A length of time for people.

    >>> duration_text(20_000_000), duration_text(90_000_000), duration_text(1_500), duration_text(None)
    ('20 s', '1 min 30 s', '1.5 ms', 'unbounded')
    """
    if micros is None:
        return "unbounded"
    if micros == 0:
        return "0 s"
    sign, rest = ("-" if micros < 0 else ""), abs(micros)
    if rest < 1_000:
        return f"{sign}{rest} µs"
    if rest < 1_000_000:
        return f"{sign}{rest / 1_000:g} ms"
    parts = []
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000)):
        if rest >= size:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    if rest:
        parts.append(f"{rest / 1_000_000:.6f}".rstrip("0").rstrip(".") + " s")
    return sign + " ".join(parts)
