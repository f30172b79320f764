"""Streaming joins give Spark's own batch answer on the same files, however these are cut."""

from __future__ import annotations

import re
from collections import Counter
from functools import reduce
from random import Random

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streaming.feeds import as_streams, as_tables, cuts, disordered, multiset, rows_of, run, write

W = "abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
W3 = (
    "greatest(a.ts, b.ts, c.ts) <= least(a.ts + INTERVAL 4 SECONDS, b.ts + INTERVAL 4 SECONDS, "
    "c.ts + INTERVAL 4 SECONDS)"
)

#: Statements with `{hint}` where the hint goes.
PAIR = "SELECT {hint} a.id i, b.id j FROM a JOIN b ON "
TRIPLE = "SELECT {hint} a.id i, b.id j, c.id l FROM a "
QUERIES = {
    "band": f"{PAIR} abs(a.x - b.x) <= 1 AND {W}",
    "equality": f"SELECT {{hint}} a.id i, b.id j, a.ts FROM a JOIN b ON a.k = b.k AND {W}",
    "null-safe": f"{PAIR} a.k <=> b.k AND {W} AND a.x < b.x",
    "words": f"SELECT {{hint}} a.s, b.id j FROM a JOIN b ON a.s = b.s AND {W}",
    "sets": f"{PAIR} size(array_intersect(a.tags, b.tags)) >= 2 AND {W}",
    "vectors": f"SELECT {{hint}} a.id i, b.v FROM a JOIN b ON vector_inner_product(a.v, b.v) >= 1.2 AND {W}",
    "general": f"{PAIR} a.x * b.x < 9 AND a.s <> b.s AND {W}",
    "one-sided": f"{PAIR} a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL 3 SECONDS",
    "shifted": f"{PAIR} abs(a.x - b.x) <= 2 AND a.ts >= b.ts + INTERVAL 1 SECOND "
    "AND a.ts < b.ts + INTERVAL 5 SECONDS",
    "uneven": f"{PAIR} a.k = b.k AND a.ts <= b.ts + INTERVAL 1 SECOND AND b.ts <= a.ts + INTERVAL 6 SECONDS",
    "same hour": f"{PAIR} hour(a.ts) = hour(b.ts) AND abs(a.x - b.x) <= 1 AND {W}",
    "filters": f"{PAIR} abs(a.x - b.x) <= 2 AND {W} WHERE a.k > 1 AND b.s = 'a'",
    "residual": f"{PAIR} abs(a.x - b.x) <= 2 AND {W} WHERE concat(a.s, b.s) LIKE '%ab%'",
    "expressions": f"SELECT {{hint}} a.x + b.x AS total, upper(a.s) u FROM a JOIN b ON a.k = b.k AND {W}",
    "star": f"SELECT {{hint}} * FROM a JOIN b ON a.k = b.k AND {W} AND a.x > b.x",
    "using": f"SELECT {{hint}} k, a.id i, b.id j FROM a JOIN b USING (k) WHERE {W}",
    "where": f"SELECT {{hint}} a.id i, b.id j FROM a, b WHERE a.k = b.k AND {W}",
    "self": "SELECT {hint} p.id i, q.id j FROM a p JOIN a q ON p.k = q.k AND p.id < q.id "
    "AND abs(p.ts - q.ts) <= INTERVAL 2 SECONDS",
    "cte": "WITH big AS (SELECT * FROM a WHERE x > 5) SELECT {hint} big.id i, b.id j FROM big JOIN b "
    "ON big.k = b.k AND abs(big.ts - b.ts) <= INTERVAL 4 SECONDS",
    "sub-query": f"SELECT i, j FROM (SELECT {{hint}} a.id i, b.id j, a.x FROM a JOIN b ON a.k = b.k AND {W}) "
    "WHERE x > 3",
    "computed": "SELECT {hint} a.id i, b.id j FROM (SELECT *, x * 2 AS y FROM a) a JOIN b "
    f"ON abs(a.y - b.x) <= 1 AND {W}",
    "case": f"{PAIR} CASE WHEN a.k > 2 THEN a.x ELSE b.x END < 6 AND {W}",
    "three bands": f"{TRIPLE} JOIN b ON abs(a.x - b.x) <= 2 JOIN c ON abs(a.x - c.x) <= 2 "
    f"AND abs(b.x - c.x) <= 2 WHERE {W3}",
    "three keys": f"{TRIPLE} JOIN b ON a.k = b.k JOIN c ON b.k = c.k WHERE {W3}",
    "three mixed": f"{TRIPLE} JOIN b ON a.s = b.s JOIN c ON abs(b.x - c.x) <= 2 WHERE {W3}",
    "three pairs": f"{TRIPLE} JOIN b ON a.k = b.k AND {W} JOIN c ON b.s = c.s "
    "AND abs(b.ts - c.ts) <= INTERVAL 2 SECONDS",
    "three hosts": f"{TRIPLE} JOIN b ON abs(a.x - b.x) <= 2 JOIN c ON abs(a.x - c.x) <= 2 WHERE {W3}",
    "four": f"{TRIPLE} JOIN b ON a.k = b.k JOIN c ON b.k = c.k JOIN d ON abs(c.x - d.x) <= 2 WHERE {W3} "
    "AND abs(c.ts - d.ts) <= INTERVAL 2 SECONDS",
    "five": f"{TRIPLE} JOIN b ON a.k = b.k JOIN c ON b.k = c.k JOIN d ON c.k = d.k JOIN e "
    f"ON abs(d.x - e.x) <= 1 WHERE {W3} AND abs(c.ts - d.ts) <= INTERVAL 1 SECOND "
    "AND abs(d.ts - e.ts) <= INTERVAL 1 SECOND",
    "six": f"{TRIPLE} JOIN b ON a.k = b.k JOIN c ON b.k = c.k JOIN d ON c.k = d.k JOIN e ON d.k = e.k "
    f"JOIN f ON e.k = f.k WHERE {W3} AND abs(c.ts - d.ts) <= INTERVAL 1 SECOND "
    "AND abs(d.ts - e.ts) <= INTERVAL 1 SECOND AND abs(e.ts - f.ts) <= INTERVAL 1 SECOND",
    "nothing": f"{PAIR} a.k = b.k + 100 AND {W}",
    "everything": f"{PAIR} (a.id >= 0 OR b.id >= 0) WHERE {W}",
}
#: They take turns; `once` joins all files in one micro-batch, the others one after another.
TRIGGERS = [
    {"availableNow": True},
    {"processingTime": "0 seconds"},
    {"processingTime": "300 milliseconds"},
    {"once": True},
]
HINTS = {
    "exact": "/*+ SHED(exact) */",
    "grubjoin": "/*+ SHED(grubjoin, 'budget=1', 'diffuse=atr:2') */",
    "relayed": "/*+ SHED(exact, 'diffuse=ctr:3') */",
    "sheds": "/*+ SHED(grubjoin, 'budget=0.4', 'adapt=1 ms', 'seed=2', 'diffuse=atr:3') */",
}


def pytest_generate_tests(metafunc):
    """Every ninth statement, unless all are asked for: each takes some seconds."""
    # Nine, as a multiple of the number of triggers would have all of them run with one.
    names = list(QUERIES) if metafunc.config.getoption("--long") else list(QUERIES)[::9]
    metafunc.parametrize("name", names)


def test_streams_give_the_answer_of_tables(enabled, name, tmp_path):
    spark, rng, text = enabled, Random(name), QUERIES[name]
    names = [own for own in "abcdef" if re.search(rf"\b(FROM|JOIN|,) {own}\b", text)]
    rows, files = (80, 2) if len(names) > 3 else (150, 3)
    for number, own in enumerate(names):
        table = disordered(rng, rows_of(rng, number, rows, 20), 1.9)
        write(tmp_path / own, table, cuts(rng, rows, files))
    as_tables(spark, tmp_path, names)
    whole = multiset(spark.sql(text.format(hint="")))
    as_streams(spark, tmp_path, names)
    # All strategies run in one query, which saves most of the time.
    frames = [spark.sql(text.format(hint=own)).withColumn("by", F.lit(by)) for by, own in HINTS.items()]
    assert all(frame.isStreaming for frame in frames)
    trigger = TRIGGERS[list(QUERIES).index(name) % len(TRIGGERS)]
    rows = run(reduce(DataFrame.unionAll, frames), tmp_path, **trigger).cache()
    found = {by: multiset(rows.where(F.col("by") == by).drop("by")) for by in HINTS}
    assert found["exact"] == found["grubjoin"] == found["relayed"] == whole
    assert found["sheds"] <= whole
    assert (whole == Counter()) == (name == "nothing")
