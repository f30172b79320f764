"""The workloads in Polars' expressions, each in the form that is fastest there.

The number of threads is read from POLARS_MAX_THREADS when Polars is imported, so whoever measures on
one thread sets it before. Like DuckDB, Polars joins on two ranges; the window is written as a difference
so that these are the ranges of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sparkshed.bench.cases import Case

if TYPE_CHECKING:
    import polars as pl

#: Left rows that are multiplied with all rows in their window at once.
_VECTOR_ROWS = 20


def prepare(case: Case, tables: Sequence[pa.Table]) -> Callable[[], int]:
    """Load the tables; the function that is returned runs the join and returns its number of results."""
    frames = [_frame(table, number) for number, table in enumerate(tables, 1)]
    return lambda: _FORMS[case.kind](case, frames).height


def _frame(table: pa.Table, number: int) -> pl.DataFrame:
    """The stream with its number behind each column, and its times in microseconds."""
    import polars as pl

    if "w" in table.column_names:
        table = _lists(table)
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col("ts").dt.epoch("us"))
    if "v" in frame.columns:
        frame = frame.with_columns(pl.col("v").cast(pl.Array(pl.Float32, len(frame["v"][0]))))
    return frame.rename({name: f"{name}{number}" for name in frame.columns})


def _lists(table: pa.Table) -> pa.Table:
    """Maps as two lists, keys `k` and values `x`: maps cannot be exploded."""
    maps = table["w"].combine_chunks()
    for name, values in (("k", maps.keys), ("x", maps.items)):
        table = table.append_column(name, pa.ListArray.from_arrays(maps.offsets, values))
    return table.drop_columns("w")


def _close(case: Case, i: int, k: int) -> pl.Expr:
    import polars as pl

    return (pl.col(f"ts{i}") - pl.col(f"ts{k}")).abs() <= round(case.window * 1e6)


def _ids(joined: pl.LazyFrame, m: int = 2) -> pl.DataFrame:
    return joined.select([f"id{i}" for i in range(1, m + 1)]).collect(engine="streaming")


def _band(case: Case, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    joined = frames[0].lazy()
    for k, frame in enumerate(frames[1:], 2):
        conditions = []
        for i in range(1, k):
            left, right = pl.col(f"x{i}"), pl.col(f"x{k}")
            conditions += [left >= right - case.limit, left <= right + case.limit]
        conditions += [_close(case, i, k) for i in range(1, k)]
        joined = joined.join_where(frame.lazy(), *conditions)
    return _ids(joined, case.m)


def _equality(case: Case, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    joined = frames[0].lazy()
    for k, frame in enumerate(frames[1:], 2):
        joined = joined.join(frame.lazy(), left_on="k1", right_on=f"k{k}")
        joined = joined.filter(*(_close(case, i, k) for i in range(1, k)))
    return _ids(joined, case.m)


def _overlap(case: Case, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    left, right = (frame.lazy().explode(f"s{i}") for i, frame in enumerate(frames, 1))
    pairs = left.join(right, left_on="s1", right_on="s2").filter(_close(case, 1, 2))
    return _ids(pairs.group_by("id1", "id2").len().filter(pl.col("len") >= case.limit))


def _weighted(case: Case, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    left, right = (frame.lazy().explode(f"k{i}", f"x{i}") for i, frame in enumerate(frames, 1))
    pairs = left.join(right, left_on="k1", right_on="k2").filter(_close(case, 1, 2))
    sums = pairs.group_by("id1", "id2").agg((pl.col("x1") * pl.col("x2")).sum().alias("sum"))
    return _ids(sums.filter(pl.col("sum") >= case.limit))


def _cosine(case: Case, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """In slices: the products of all pairs at once would not fit in memory."""
    import polars as pl

    left, right = (
        frame.with_columns((pl.col(f"v{i}") * pl.col(f"v{i}")).arr.sum().sqrt().alias(f"n{i}"))
        for i, frame in enumerate(frames, 1)
    )
    length = round(case.window * 1e6)
    similar = (pl.col("v1") * pl.col("v2")).arr.sum() >= case.limit * pl.col("n1") * pl.col("n2")
    parts = []
    for part in left.iter_slices(_VECTOR_ROWS):
        near = right.filter(pl.col("ts2").is_between(part["ts1"][0] - length, part["ts1"][-1] + length))
        pairs = part.lazy().join(near.lazy(), how="cross").filter(_close(case, 1, 2), similar)
        parts.append(pairs.select("id1", "id2").collect())
    return pl.concat(parts)


def _general(case: Case, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    x, y = (pl.col(f"{axis}1") - pl.col(f"{axis}2") for axis in "xy")
    near = x * x + y * y <= case.limit**2
    return _ids(frames[0].lazy().join_where(frames[1].lazy(), _close(case, 1, 2), near))


_FORMS = {
    "band": _band,
    "equality": _equality,
    "overlap": _overlap,
    "weighted": _weighted,
    "cosine": _cosine,
    "general": _general,
}
