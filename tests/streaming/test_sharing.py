"""Streaming joins that share one buffer: one operator with state, through restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import sparkshed
from streaming.feeds import as_streams, as_tables, copied, multiset, run, schema_of
from streaming.test_queries import finished

W = "abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
HINT = "/*+ SHED({strategy}, 'memory={memory}', 'seed=3') */"
BOTH = (
    f"SELECT {HINT} a.id AS i, b.id AS j, a.ts, 'k' AS why FROM a JOIN b ON a.k = b.k AND {W} "
    f"UNION ALL SELECT {HINT} x.id, y.id, x.ts, y.s FROM b y JOIN a x ON abs(x.x - y.x) <= 1 "
    f"AND {W.replace('a.', 'x.').replace('b.', 'y.')}"
)


@pytest.fixture(scope="module")
def answer(spark, four_files):
    """What the statement gives without hints."""
    as_tables(spark, four_files, ["a", "b"])
    return multiset(spark.sql(text(1)))


@pytest.fixture
def feeds(answer, enabled, four_files, tmp_path):
    """Two streams of four files, in order, and what the statement gives without hints."""
    copied(four_files, tmp_path, range(4))
    as_streams(enabled, tmp_path, ["a", "b"])
    return enabled, tmp_path, answer


def text(memory: int, strategy: str = "gdj") -> str:
    return BOTH.format(strategy=strategy, memory=memory)


def start(frame, folder: Path, sink: str):
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / sink))


@pytest.mark.parametrize("strategy", ["gdj", "lru"])
def test_with_enough_memory_the_answer_is_exact(feeds, strategy):
    spark, folder, whole = feeds
    assert multiset(run(spark.sql(text(5000, strategy)), folder)) == whole


def test_a_part_of_both_joins_by_one_operator_through_a_restart(feeds):
    spark, folder, whole = feeds
    query = finished(start(spark.sql(text(40)), folder, "out"))
    assert len(query.lastProgress.stateOperators) == 1
    history = sparkshed.history(query)
    assert set(history["memory"]) == {40} and history["window_rows"].max() <= 40
    assert history["join"].nunique() == 1
    found = multiset(spark.read.parquet(str(folder / "out")))
    assert Counter() < found < whole
    assert history["results"].sum() == found.total()
    assert abs(history["total_completeness"].iloc[-1] - found.total() / whole.total()) < 0.2

    # The same files in two runs: the second one goes on where the first one stopped.
    stopped = folder / "stopped"
    copied(folder, stopped, range(2))
    as_streams(spark, stopped, ["a", "b"])
    start(spark.sql(text(40)), stopped, "out").awaitTermination()
    before = multiset(spark.read.parquet(str(stopped / "out")))
    copied(folder, stopped, range(2, 4))
    start(spark.sql(text(40)), stopped, "out").awaitTermination()
    assert Counter() < before < found
    assert multiset(spark.read.parquet(str(stopped / "out"))) == found


def test_the_watermark_goes_through(feeds):
    spark, folder, whole = feeds
    windows = f"SELECT window(ts, '4 seconds') AS w, why, count(*) AS n FROM ({text(5000)}) GROUP BY 1, 2"
    counts = run(spark.sql(windows), folder)
    assert 0 < sum(row.n for row in counts.collect()) <= whole.total()
    as_tables(spark, folder, ["a", "b"])
    exact = multiset(sparkshed.disable(spark).sql(windows))
    assert Counter() < multiset(counts) <= exact


def test_watermarks_in_the_statement(feeds):
    spark, folder, whole = feeds
    for name in "ab":
        frame = spark.readStream.schema(schema_of(folder / name)).parquet(str(folder / name))
        frame.createOrReplaceTempView(f"raw_{name}")
    marked = text(5000)
    for old, new in (
        ("FROM a JOIN b ON", "FROM {a} a JOIN {b} b ON"),
        ("FROM b y JOIN a x", "FROM {b} y JOIN {a} x"),
    ):
        marked = marked.replace(old, new)
    delays = {name: f"STREAM raw_{name} WATERMARK ts DELAY OF INTERVAL 2 SECONDS" for name in "ab"}
    marked = marked.replace("{a}", delays["a"]).replace("{b}", delays["b"])
    assert "Buffer: shared with join 2" in sparkshed.explain(spark, marked)
    assert multiset(run(spark.sql(marked), folder)) == whole


def test_explain_of_streams(feeds):
    spark, _, _ = feeds
    lines = sparkshed.explain(spark, text(40)).split("\n")
    assert "  Hosts: 1, routing=none" in lines
    assert "  Memory: 40 rows, evict=gdj, buffers=unified" in lines
    assert [line for line in lines if "Buffer" in line] == [
        "  Buffer: shared with join 2",
        "  Buffer: shared with join 1",
    ]
