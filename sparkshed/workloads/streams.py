"""What all generated streams share: times of arrival, skewed choices and the text of a window join."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

#: How the window is written: `compact` with greatest and least, `pairwise` with a BETWEEN per pair.
WindowForm: TypeAlias = Literal["compact", "pairwise"]

#: The instant at which every generated stream starts.
EPOCH = datetime(2024, 1, 1, tzinfo=timezone.utc)

#: Type of the column `ts`.
TIMESTAMP = pa.timestamp("us", tz="UTC")


def uniform_times(rng: np.random.Generator, rate: float, seconds: float) -> Floats:
    """Ascending times of `int(rate * seconds)` rows, uniform over the length of the stream.

    >>> uniform_times(np.random.default_rng(0), 1, 4).shape
    (4,)
    """
    for name, value in (("rate", rate), ("seconds", seconds)):
        if not value > 0:
            msg = f"{name} = {value}: must be positive"
            raise ValueError(msg)
    return np.sort(rng.uniform(0, seconds, int(rate * seconds)))


def timestamps(t: Floats) -> pa.Array:
    """Seconds from the start as instants, cut to whole microseconds.

    >>> timestamps(np.array([1.5]))[0].as_py().isoformat()
    '2024-01-01T00:00:01.500000+00:00'
    """
    start = int(EPOCH.timestamp()) * 1_000_000
    return pa.array(start + np.floor(t * 1e6).astype(np.int64)).cast(TIMESTAMP)


def stream_table(t: Floats, name: str, values: pa.Array) -> pa.Table:
    """A stream as a table: `ts`, the column `name`, and `id`, which counts rows from 0."""
    return pa.table({"ts": timestamps(t), name: values, "id": pa.array(np.arange(len(t), dtype=np.int64))})


def zipf(n: int, skew: float = 1.0) -> Floats:
    """Probabilities of n choices in proportion to 1 / rank**skew; skew 0 makes them equal.

    >>> zipf(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = np.arange(1, n + 1, dtype=np.float64) ** -skew
    return weights / weights.sum()


def window_sql(aliases: list[str], seconds: float, form: WindowForm = "compact") -> str:
    """The condition that all rows of a result lie within `seconds` of each other.

    >>> window_sql(["a", "b"], 5, "pairwise")
    'a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts + INTERVAL 5 SECONDS'
    """
    length = f"INTERVAL {seconds:g} SECONDS"
    if form == "pairwise":
        pairs = combinations(aliases, 2)
        return " AND ".join(f"{a}.ts BETWEEN {b}.ts - {length} AND {b}.ts + {length}" for a, b in pairs)
    times = ", ".join(f"{a}.ts" for a in aliases)
    ends = ", ".join(f"{a}.ts + {length}" for a in aliases)
    return f"greatest({times}) <= least({ends})"


def join_sql(
    relation: str,
    m: int,
    condition: Callable[[str, str], str],
    window_seconds: float,
    hint: str | None = None,
    *,
    alias: str = "",
    every_pair: bool = True,
    form: WindowForm = "compact",
) -> str:
    """The m-way window join over the views `<relation>1` to `<relation><m>`, returning their ids.

    Args:
        relation: Name of the views, without the number.
        m: Number of streams, two or more.
        condition: The join condition of two aliases.
        window_seconds: Length of the window that holds all rows of a result.
        hint: What goes between `/*+` and `*/`; None leaves the hint out.
        alias: Short name of the views; the first letter of `relation` if empty.
        every_pair: Put the condition on every pair, not only on the first stream with each other.
        form: How the window is written.
    """
    if m < 2:
        msg = f"m = {m}: a join needs two or more streams"
        raise ValueError(msg)
    aliases = [f"{alias or relation[0]}{i}" for i in range(1, m + 1)]
    columns = ", ".join(f"{a}.id AS id{i}" for i, a in enumerate(aliases, 1))
    lines = [f"SELECT {f'/*+ {hint} */ ' if hint else ''}{columns}", f"FROM {relation}1 {aliases[0]}"]
    for i, name in enumerate(aliases[1:], 2):
        earlier = aliases[: i - 1] if every_pair else aliases[:1]
        lines.append(f"JOIN {relation}{i} {name} ON {' AND '.join(condition(e, name) for e in earlier)}")
    lines.append(f"WHERE {window_sql(aliases, window_seconds, form)}")
    return "\n".join(lines)
