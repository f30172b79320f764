"""How many rows the windows may hold, and which of them leave first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkshed.sql.hint import ShedHint

POLICIES = ("gdj", "prob", "age", "lru", "lfu", "fifo", "rand")
#: Bytes that a row costs beside its columns: its time, its credit, what it stands for, its places.
ROW_OVERHEAD = 64
#: Bytes of a row, about, where somebody must know how many a limit in bytes has room for.
_TYPICAL = 128


@dataclass(frozen=True, slots=True)
class Buffering:
    """A limit for all windows together, and what is done about it.

    Attributes:
        policy: Which rows leave first.
        rows: The limit in rows; None if it is one in bytes.
        bytes: The limit in bytes: the Arrow bytes of the columns that are kept, and `ROW_OVERHEAD` a row;
            what is learned of values and ages, and indexes, come on top.
        unified: One buffer for all streams; otherwise each has a part of it, in proportion to its rows.
        method: How `gdj` gives credit: METHOD 1, 2 or 3 of the paper.
        percentile: Of the credits, that rows start with in `gdj`; None to learn what credits are worth.
        own: Whether rows start `gdj` with credit for the results that they arrive with, beside the
            percentile; not so in the paper.
        harvest: Whether credits of `gdj` count by the ages at which rows are probed, if that is at some only.
        sample: Drop probability in front of the buffer, or `auto`.
        sketch: Counters that `prob` counts the values of a stream with; None for exact counts.
        reserve: The share of the buffer in which evicted rows live on at random, to tell what is missed.
    """

    policy: str
    rows: int | None = None
    bytes: int | None = None
    unified: bool = True
    method: int = 1
    percentile: float | None = None
    own: bool = True
    harvest: bool = True
    sample: float | str | None = None
    sketch: int | None = None
    reserve: float = 1 / 32

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            msg = f"unknown policy {self.policy!r}; there are {', '.join(POLICIES)}"
            raise ValueError(msg)
        if (self.rows is None) == (self.bytes is None) or self.limit < 1:
            msg = (
                f"a limit in rows or in bytes is needed, above 0; found {self.rows} rows, {self.bytes} bytes"
            )
            raise ValueError(msg)
        if self.method not in (1, 2, 3):
            msg = f"method must be 1, 2 or 3, found {self.method}"
            raise ValueError(msg)
        shares = [self.percentile or 0.0, 0.0 if self.sample in (None, "auto") else float(self.sample or 0)]
        if not all(0 <= share <= 1 for share in (*shares, self.reserve)):
            msg = "percentile, sample and reserve are shares"
            raise ValueError(msg)

    @property
    def limit(self) -> int:
        """What the buffer may hold, in rows or in bytes."""
        return self.rows or self.bytes or 0

    @property
    def room(self) -> int:
        """Rows that there is room for, about."""
        return self.rows or max(1, self.limit // _TYPICAL)

    def divided(self, parts: int) -> Buffering:
        """The share of one of several hosts."""
        if self.rows is not None:
            return replace(self, rows=max(1, self.rows // parts))
        return replace(self, bytes=max(1, self.limit // parts))


def buffering_of(hint: ShedHint, parts: int) -> Buffering | None:
    """The options of a hint about memory, for each of several groups or hosts; None without a limit."""
    if hint.memory is None:
        return None
    rows, credits = hint.memory.unit == "rows", hint.credits
    whole = Buffering(
        policy=hint.evict,
        rows=hint.memory.amount if rows else None,
        bytes=None if rows else hint.memory.amount,
        unified=hint.options.get("buffers", "unified") == "unified",
        sample=hint.sample,
        method=1 if credits is None else credits.method,
        percentile=None if credits is None else credits.percentile,
        # As in the paper, where a rule of it is asked for.
        own=credits is None,
        sketch=hint.sketch,
    )
    return whole.divided(parts)
