"""The workloads in DuckDB, on one thread, each in the form that is fastest there.

DuckDB joins on ranges with IEJoin, which takes the first two range conditions it recognises. Where a
band on values is more selective than the window, the window is written so that it is not recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import pyarrow as pa

from sparkshed.bench.cases import Case

if TYPE_CHECKING:
    import duckdb


def prepare(case: Case, tables: Sequence[pa.Table], *, same_sql: bool = False) -> Callable[[], int]:
    """Load the tables; the function that is returned runs the join and returns its number of results."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for number, table in enumerate(tables, 1):
        _load(connection, f"{case.relation}{number}", table)
    text = case.sql() if same_sql else sql(case)

    def join() -> int:
        return sum(batch.num_rows for batch in connection.sql(text).to_arrow_reader(1 << 18))

    return join


def _load(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Arithmetic on instants with a zone is slow in DuckDB, and arrays have a type of their own."""
    casts = ["ts::TIMESTAMP AS ts"]
    if "v" in table.column_names:
        casts.append(f"v::FLOAT[{len(table['v'][0])}] AS v")
    connection.register("source", table)
    connection.execute(f"CREATE TABLE {name} AS SELECT * REPLACE ({', '.join(casts)}) FROM source")
    connection.unregister("source")


def sql(case: Case) -> str:
    """The fastest form found."""
    return _FORMS[case.kind](case)


def _close(a: str, b: str, case: Case) -> str:
    """The window as a difference: no range that IEJoin recognises."""
    return f"abs(epoch_us({a}.ts) - epoch_us({b}.ts)) <= {round(case.window * 1e6)}"


def _spans(a: str, b: str, case: Case) -> str:
    """The window by the ends of both rows' windows: none either, and cheaper on long columns."""
    return f"greatest({a}.ts, {b}.ts) <= least({a}.ts, {b}.ts) + INTERVAL {case.window:g} SECONDS"


def _between(a: str, b: str, case: Case) -> str:
    length = f"INTERVAL {case.window:g} SECONDS"
    return f"{a}.ts BETWEEN {b}.ts - {length} AND {b}.ts + {length}"


def _band(case: Case) -> str:
    aliases = [f"c{i}" for i in range(1, case.m + 1)]
    lines = [f"SELECT {', '.join(f'{a}.id AS id{a[1:]}' for a in aliases)} FROM cam1 c1"]
    for k, b in enumerate(aliases[1:], 1):
        values = [f"{a}.x BETWEEN {b}.x - {case.limit:g} AND {b}.x + {case.limit:g}" for a in aliases[:k]]
        times = [_close(a, b, case) for a in aliases[:k]]
        lines.append(f"JOIN cam{k + 1} {b} ON {' AND '.join(values + times)}")
    return "\n".join(lines)


def _equality(case: Case) -> str:
    aliases = [f"k{i}" for i in range(1, case.m + 1)]
    columns = ", ".join(f"{a}.id AS id{a[1:]}" for a in aliases)
    joins = " ".join(f"JOIN keyed{a[1:]} {a} ON k1.k = {a}.k" for a in aliases[1:])
    window = " AND ".join(_between(a, b, case) for a, b in combinations(aliases, 2))
    return f"SELECT {columns} FROM keyed1 k1 {joins} WHERE {window}"


def _overlap(case: Case) -> str:
    return f"""
        WITH a AS (SELECT id, ts, unnest(s) AS item FROM sets1),
             b AS (SELECT id, ts, unnest(s) AS item FROM sets2)
        SELECT a.id AS id1, b.id AS id2 FROM a JOIN b ON a.item = b.item AND {_between("a", "b", case)}
        GROUP BY a.id, b.id HAVING count(*) >= {case.limit:g}"""


def _weighted(case: Case) -> str:
    def items(number: int) -> str:
        return f"SELECT id, ts, unnest(map_keys(w)) AS k, unnest(map_values(w)) AS x FROM weights{number}"

    return f"""
        WITH a AS ({items(1)}), b AS ({items(2)})
        SELECT a.id AS id1, b.id AS id2 FROM a JOIN b ON a.k = b.k AND {_close("a", "b", case)}
        GROUP BY a.id, b.id HAVING sum(a.x * b.x) >= {case.limit:g}"""


def _cosine(case: Case) -> str:
    def unit(number: int) -> str:
        length = "sqrt(array_inner_product(v, v))"
        return f"SELECT id, ts, list_transform(v::FLOAT[], lambda x: x / {length}) AS u FROM vectors{number}"

    return f"""
        WITH a AS (SELECT id, ts, u::FLOAT[128] AS u FROM ({unit(1)})),
             b AS (SELECT id, ts, u::FLOAT[128] AS u FROM ({unit(2)}))
        SELECT a.id AS id1, b.id AS id2 FROM a JOIN b
        ON {_spans("a", "b", case)} AND array_inner_product(a.u, b.u) >= {case.limit:g}"""


def _general(case: Case) -> str:
    distance = "(a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)"
    return f"""
        SELECT a.id AS id1, b.id AS id2 FROM points1 a JOIN points2 b
        ON {_spans("a", "b", case)} AND {distance} <= {case.limit**2:g}"""


_FORMS = {
    "band": _band,
    "equality": _equality,
    "overlap": _overlap,
    "weighted": _weighted,
    "cosine": _cosine,
    "general": _general,
}
