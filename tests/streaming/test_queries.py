"""Streaming joins in a user's hands: what may stand around them, restarts, figures, and errors."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import sparkshed
from sparkshed.spark.streaming import driver
from sparkshed.spark.streaming.control import Channel, ControlReader
from sparkshed.spark.streaming.starting import _own_files, is_local
from streaming.feeds import SECOND, as_streams, as_tables, copied, multiset, rows_of, run, write

W = "abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
JOIN = f"FROM a JOIN b ON abs(a.x - b.x) <= 2 AND {W}"
TEXT = f"SELECT {{hint}} a.id i, b.id j, a.ts {JOIN}"


def hint(strategy: str, *options: str) -> str:
    return f"/*+ SHED({', '.join([strategy, *(repr(option) for option in options)])}) */"


@pytest.fixture(scope="module")
def answer(spark, four_files):
    """The join of two streams of four files."""
    as_tables(spark, four_files, ["a", "b"])
    return multiset(spark.sql(TEXT.format(hint="")))


@pytest.fixture
def feeds(answer, enabled, four_files, tmp_path):
    """Two streams of four files, in order, and what the join of them is."""
    copied(four_files, tmp_path, range(4))
    as_streams(enabled, tmp_path, ["a", "b"])
    return enabled, tmp_path, answer


@pytest.fixture(scope="module")
def short_answer(spark, four_files, tmp_path_factory):
    """The join of the first two files of both streams."""
    folder = tmp_path_factory.mktemp("short")
    copied(four_files, folder, range(2))
    as_tables(spark, folder, ["a", "b"])
    return multiset(spark.sql(TEXT.format(hint="")))


@pytest.fixture
def short(short_answer, enabled, four_files, tmp_path):
    """Two streams of two files, where more would show no more, and what the join of them is."""
    copied(four_files, tmp_path, range(2))
    as_streams(enabled, tmp_path, ["a", "b"])
    return enabled, tmp_path, short_answer


def start(frame, folder: Path, **trigger):
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def eventually(true) -> None:
    """Wait for news from Spark's listeners."""
    for _ in range(200):
        if true():
            return
        time.sleep(0.1)
    pytest.fail("it did not become true")


def finished(query, *, again: bool = False):
    """The query, when it is done and its figures have arrived; there are none where all was joined before."""
    query.awaitTermination()
    if again:
        return query
    last = [p.batchId for p in query.recentProgress if p.numInputRows][-1]
    eventually(lambda: len(found := sparkshed.history(query)) and found["batch"].max() >= last)
    return query


def test_a_session_at_sparks_defaults_stays_as_it_is(short):
    spark, folder, whole = short
    partitions, provider = "spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass"
    before = {key: spark.conf.get(key) for key in (partitions, provider)}
    spark.conf.set(partitions, "200")
    spark.conf.unset(provider)
    try:
        query = finished(start(spark.sql(TEXT.format(hint=hint("exact"))), folder))
        assert spark.conf.get(partitions) == "200"
        assert "HDFS" in spark.conf.get(provider)
        assert [own.numShufflePartitions for own in query.lastProgress.stateOperators] == [2]
        assert sparkshed.history(query)["results"].sum() == sum(whole.values())
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


FILES = "spark.sql.streaming.checkpointFileManagerClass"
CONTEXT = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


@pytest.mark.parametrize("wanted", [None, CONTEXT])
def test_a_checkpoint_on_a_local_disk_starts_no_processes_unless_the_user_says_how(short, wanted):
    spark, folder, _ = short
    if wanted:
        spark.conf.set(FILES, wanted)
    try:
        query = start(spark.sql(TEXT.format(hint=hint("exact"))), folder)
        used = query._jsq.streamingQuery().sparkSessionForStream().conf().get(FILES)
        assert used == wanted or (not wanted and "FileSystemBased" in used)
        assert spark.conf.get(FILES, None) == wanted
        assert sparkshed.history(finished(query))["results"].sum() > 0
        assert all(own.numInputRows for own in query.recentProgress), "no batch is for the watermark alone"
    finally:
        spark.conf.unset(FILES)


def test_files_elsewhere_are_left_to_spark(enabled):
    assert is_local(enabled, "file:/checkpoint")
    assert not is_local(enabled, "nowhere://host/checkpoint")
    with _own_files(enabled, {"checkpointlocation": "here", "path": "nowhere://host/results"}):
        assert enabled.conf.get(FILES, None) is None
    with _own_files(enabled, {"checkpointlocation": "here", "path": "there"}):
        assert "FileSystemBased" in enabled.conf.get(FILES)
    assert enabled.conf.get(FILES, None) is None


def test_a_start_that_fails_leaves_nothing_behind(short):
    spark, folder, whole = short
    frame = spark.sql(TEXT.format(hint=hint("grubjoin")))
    before = dict(spark.conf.getAll)
    with pytest.raises(Exception, match="no_such_sink"):
        frame.writeStream.format("no_such_sink").option("checkpointLocation", str(folder / "other")).start()
    assert dict(spark.conf.getAll) == before
    query = finished(start(frame, folder))
    assert sparkshed.history(query)["results"].sum() == sum(whole.values())
    eventually(lambda: not driver._takers())


def test_figures_that_cannot_be_taken_in_are_logged_and_the_join_goes_on(short, monkeypatch, caplog):
    spark, folder, whole = short

    def fail(run, batch):
        raise ZeroDivisionError

    monkeypatch.setattr(driver.Run, "progress", fail)
    found = run(spark.sql(TEXT.format(hint=hint("grubjoin"))), folder)
    assert multiset(found) == whole
    eventually(lambda: "could not be taken in" in caplog.text)
    assert "ZeroDivisionError" in caplog.text


def test_an_aggregation_may_follow(feeds):
    """Its watermark must not take older rows of a result for late ones."""
    spark, folder, _ = feeds
    counted = (
        f"SELECT {{hint}} window(a.ts, '3 seconds').start AS w, count(*) AS n {JOIN} "
        "GROUP BY window(a.ts, '3 seconds')"
    )
    as_tables(spark, folder, ["a", "b"])
    whole = {row.w: row.n for row in spark.sql(counted.format(hint="")).collect()}
    as_streams(spark, folder, ["a", "b"], "1 second")
    found = {row.w: row.n for row in run(spark.sql(counted.format(hint=hint("exact"))), folder).collect()}
    assert len(found) >= 3
    assert found == {window: whole[window] for window in found}
    # Only windows near the end are still open.
    assert len(whole) - len(found) <= 4


def test_a_stream_may_come_out_of_an_aggregation(feeds):
    """Its rows are as old as the watermark when they come, and not late."""
    spark, folder, _ = feeds
    counts = (
        "SELECT window_time(window) AS ts, k, n FROM "
        "(SELECT window, k, count(*) AS n FROM a GROUP BY window(ts, '2 seconds'), k)"
    )
    text = f"SELECT {{hint}} a.k, a.n, b.id FROM counts a JOIN b ON a.k = b.k AND {W}"
    as_tables(spark, folder, ["a", "b"])
    spark.sql(counts).createOrReplaceTempView("counts")
    whole = multiset(spark.sql(text.format(hint="")))
    as_streams(spark, folder, ["a", "b"], "1 second")
    spark.sql(counts).createOrReplaceTempView("counts")
    found = multiset(run(spark.sql(text.format(hint=hint("exact"))), folder))
    assert found <= whole
    # What is still open at the end is missing.
    assert sum(found.values()) > 0.6 * sum(whole.values())


def test_a_run_without_hurry_does_all_the_work_again(feeds):
    """A run that shed left a decision in the checkpoint; the next one joins what is there in full."""
    spark, folder, _ = feeds
    options = ("budget=0.3", "adapt=1 ms", "seed=3")
    first = finished(start(spark.sql(TEXT.format(hint=hint("grubjoin", *options))), folder))
    assert sparkshed.history(first)["z"].min() < 1
    for name in "ab":
        write_later(folder / name, 4)
    second = finished(start(spark.sql(TEXT.format(hint=hint("grubjoin"))), folder))
    assert (sparkshed.history(second)["z"] == 1).all()


def write_later(folder: Path, number: int) -> None:
    """One more file, with rows of later times."""
    table = rows_of(Random(number), number, 40, 4)
    times = table.column("ts").cast(pa.int64()).to_numpy() + 24 * SECOND
    table = table.set_column(1, "ts", pa.array(times).cast(pa.timestamp("us", "UTC")))
    path = folder / f"{number:05}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1e9 + number, 1e9 + number))


def test_a_table_is_there_from_the_start(feeds):
    spark, folder, whole = feeds
    as_tables(spark, folder, ["b"])
    frame = spark.sql(TEXT.format(hint=hint("exact")))
    assert frame.isStreaming
    assert multiset(run(frame, folder)) == whole


@pytest.mark.parametrize("strategy", ["grubjoin", "randomdrop", "adaptive"])
def test_shed_streams_give_a_part_of_the_answer_and_say_how_much(feeds, strategy):
    spark, folder, whole = feeds
    frame = spark.sql(TEXT.format(hint=hint(strategy, "budget=0.4", "adapt=100 ms", "seed=3")))
    found = multiset(run(frame, folder))
    assert found <= whole
    assert 0.05 < sum(found.values()) / sum(whole.values()) < 1


@pytest.mark.parametrize("strategy", ["grubjoin", "adaptive"])
def test_a_restart_goes_on_where_it_was(answer, enabled, four_files, tmp_path, strategy):
    """Half of the files, then the others, in a new query on the same checkpoint."""
    spark, out = enabled, tmp_path / "out"
    for half in (0, 1):
        copied(four_files, tmp_path, range(2 * half, 2 * half + 2))
        as_streams(spark, tmp_path, ["a", "b"])
        options = ("budget=1", "adapt=1 ms") if half == 0 else ("budget=1", "adapt=1 ms", "shred=0.2")
        frame = spark.sql(TEXT.format(hint=hint(strategy, *options)))
        writer = frame.writeStream.format("parquet").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        query = finished(writer.trigger(availableNow=True).start(str(out)))
        eventually(lambda query=query: not Path(driver.runs_of(query)[0][1]._channel.path).exists())
    assert multiset(spark.read.parquet(str(out))) == answer


def test_a_restart_remembers_what_was_learned(feeds):
    spark, folder, _ = feeds
    options = ("budget=0.5", "adapt=1 ms", "seed=3", "shred=0.5")
    first = finished(start(spark.sql(TEXT.format(hint=hint("grubjoin", *options))), folder))
    last = sparkshed.history(first)["decision"].max()
    assert last > 0
    for name in "ab":
        write_later(folder / name, 4)
    second = finished(start(spark.sql(TEXT.format(hint=hint("grubjoin", *options))), folder))
    found = sparkshed.history(second)
    assert found["decision"].min() >= last
    loop = driver.runs_of(second)[0][1].loop
    assert loop.version >= last
    assert loop.adapter.learned is not None


def test_another_query_on_the_same_checkpoint_is_refused(short):
    spark, folder, _ = short
    finished(start(spark.sql(TEXT.format(hint=hint("exact"))), folder))
    write(folder / "more", rows_of(Random(1), 5, 10, 24), [])
    for name in "ab":
        os.link(folder / "more" / "00000.parquet", folder / name / "00009.parquet")
    changed = TEXT.replace("<= 2", "<= 3").format(hint=hint("exact"))
    with pytest.raises(sparkshed.PlanError, match="differs in its `join conditions`.*Fix:"):
        start(spark.sql(changed), folder)


def test_a_checkpoint_in_the_place_that_the_session_names(short):
    spark, folder, _ = short
    home = "spark.sql.streaming.checkpointLocation"
    spark.conf.set(home, str(folder / "home"))
    try:
        for again in range(2):
            frame = spark.sql(TEXT.format(hint=hint("exact")))
            writer = frame.writeStream.format("noop").queryName("named").trigger(availableNow=True)
            finished(writer.start(), again=bool(again))
        assert (folder / "home" / "named" / "sparkshed.json").exists()
        changed = spark.sql(TEXT.replace("<= 2", "<= 3").format(hint=hint("exact")))
        with pytest.raises(sparkshed.PlanError, match="differs in its `join conditions`"):
            changed.writeStream.format("noop").queryName("named").trigger(availableNow=True).start()
    finally:
        spark.conf.unset(home)


def test_what_may_change_and_what_may_not(short):
    spark, folder, whole = short
    finished(start(spark.sql(TEXT.format(hint=hint("grubjoin"))), folder))
    # The condition that a message about a NULL time asks for.
    other = TEXT.replace(W, f"{W} AND a.ts IS NOT NULL").format(hint=hint("grubjoin"))
    finished(start(spark.sql(other), folder), again=True)
    two = "SELECT {} a.id i, b.id j FROM a JOIN b ON a.k = b.k"
    finished(start(spark.sql(two.format(hint("dual", "rows=40"))), folder / "rows"))
    with pytest.raises(sparkshed.PlanError, match="differs in its .*`rows of a window`"):
        start(spark.sql(two.format(hint("dual", "rows=50"))), folder / "rows")


def test_a_join_of_other_relations_is_refused_before_it_starts(short):
    """Sources in another order or number, which Spark itself has no clear words for."""
    spark, folder, _ = short
    finished(start(spark.sql(TEXT.format(hint=hint("exact"))), folder))
    others = [
        TEXT.replace("FROM a JOIN b", "FROM b JOIN a"),
        TEXT.replace(
            JOIN, f"FROM a JOIN b ON abs(a.x - b.x) <= 2 AND {W} JOIN a c ON c.k = b.k AND c.ts = b.ts"
        ),
    ]
    for text in others:
        with pytest.raises(sparkshed.PlanError, match="another query, which differs in its .*`streams`"):
            start(spark.sql(text.format(hint=hint("exact"))), folder)
    both = spark.sql(TEXT.format(hint=hint("exact")))
    both = both.unionAll(spark.sql(TEXT.format(hint=hint("exact"))))
    with pytest.raises(sparkshed.PlanError, match=r"it has 1 SHED join\(s\), and this one has 2"):
        start(both, folder)
    # Without what was written beside the log, hosts find out.
    (folder / "checkpoint" / "sparkshed.json").unlink()
    write_later(folder / "a", 4)
    changed = TEXT.replace("<= 2", "<= 3").format(hint=hint("exact"))
    with pytest.raises(StreamingQueryException, match="written by another query.*join conditions"):
        start(spark.sql(changed), folder).awaitTermination()


def test_a_join_that_sheds_is_not_continued_exactly(short):
    spark, folder, _ = short
    finished(start(spark.sql(TEXT.format(hint=hint("grubjoin"))), folder))
    with pytest.raises(sparkshed.PlanError, match="differs in its `strategy`.*checkpointLocation"):
        start(spark.sql(TEXT.format(hint=hint("exact"))), folder)
    exact = spark.sql(TEXT.format(hint=hint("exact")))
    finished(start(exact, folder / "exact"))
    finished(start(exact, folder / "exact"), again=True)
    with pytest.raises(sparkshed.PlanError, match="another query, which differs in its `strategy`"):
        start(spark.sql(TEXT.format(hint=hint("grubjoin"))), folder / "exact")


def test_keys_that_are_null_match_nothing_and_errors_are_sparks_own(short):
    spark, folder, _ = short
    text = f"SELECT {{hint}} a.id i, b.id j FROM a JOIN b ON a.k = b.k AND a.tags[0] = b.tags[1] AND {W}"
    broken = text.replace("a.tags[0]", "a.tags[7]")
    as_tables(spark, folder, ["a", "b"])
    whole = multiset(spark.sql(text.format(hint="")))
    assert spark.table("a").where("k IS NULL OR tags IS NULL").count() > 0
    with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
        spark.sql(broken.format(hint="")).collect()
    as_streams(spark, folder, ["a", "b"])
    assert multiset(run(spark.sql(text.format(hint=hint("exact"))), folder / "null")) == whole
    with pytest.raises(StreamingQueryException, match="INVALID_ARRAY_INDEX"):
        start(spark.sql(broken.format(hint=hint("exact"))), folder / "broken").awaitTermination()


#: What Spark says itself, and what goes on over micro-batches.
NOT_OBSERVED = {"join", "batch", "timestamp", "seconds", "lasted"}
NOT_OBSERVED |= {f"total_completeness{end}" for end in ("", "_low", "_high")}
# Of all hosts together.
NOT_OBSERVED |= {"host_work", "unevenness"}


def test_figures_for_users_and_for_other_listeners(feeds):
    spark, folder, whole = feeds
    query = finished(start(spark.sql(TEXT.format(hint=hint("grubjoin", "budget=1"))), folder))
    history = sparkshed.history(query)
    assert history["results"].sum() == sum(whole.values())
    assert history["a.arrived"].sum() == history["b.arrived"].sum() == 160
    assert history["b.joined"].sum() == 160
    assert history["a.work"].sum() > 0
    assert (history["completeness"] == 1).all()
    assert (history["z"] == 1).all()
    assert history["state_bytes"].max() > 0
    last = sparkshed.progress(query)
    assert last == {name: history.iloc[-1][name] for name in last}
    (name,) = [own for own in query.lastProgress.observedMetrics if own.startswith("sparkshed")]
    observed = [progress.observedMetrics.get(name) for progress in query.recentProgress]
    known = [row for row in observed if row is not None and row["a_arrived"] is not None]
    assert sum(row["a_arrived"] for row in known) == sum(row["b_arrived"] for row in known) == 160
    assert sum(row["results"] for row in known) == sum(whole.values())
    assert known[-1]["z"] == 1
    assert set(known[0].asDict()) >= {name.replace(".", "_") for name in history.columns} - NOT_OBSERVED
    with pytest.raises(sparkshed.ShedError, match="no SHED join"):
        sparkshed.progress(start(spark.readStream.format("rate").load(), folder / "other", once=True))


def test_rows_without_times_and_late_ones_are_counted(enabled, tmp_path):
    spark, rng = enabled, Random(9)
    table = rows_of(rng, 0, 90, 30)
    times = table.column("ts").cast(pa.int64()).to_pylist()
    times[5] = times[50] = None
    # One row comes ten seconds after its time.
    times[89] = times[60] - 10 * SECOND
    late = table.set_column(1, "ts", pa.array(times).cast(pa.timestamp("us", "UTC")))
    write(tmp_path / "a", late, [30, 30, 29])
    write(tmp_path / "b", rows_of(rng, 1, 90, 30), [30, 30, 29])
    as_streams(spark, tmp_path, ["a", "b"], "1 second")
    history = sparkshed.history(finished(start(spark.sql(TEXT.format(hint=hint("exact"))), tmp_path)))
    assert history["a.null_time"].sum() == 2
    assert history["a.late"].sum() == 1
    assert history["a.arrived"].sum() == 90
    assert history["a.joined"].sum() == 87
    assert history["b.late"].sum() == 0


def test_without_a_watermark_the_user_is_warned_and_nothing_expires(feeds):
    spark, folder, whole = feeds
    as_streams(spark, folder, ["b"], None)
    with pytest.warns(UserWarning, match="`b` without a watermark on `b.ts`"):
        frame = spark.sql(TEXT.format(hint=hint("exact")))
    assert multiset(run(frame, folder)) == whole


def test_a_predicate_that_fails_is_named(feeds):
    spark, folder, _ = feeds

    def broken(left, right):
        msg = "a bug in it"
        raise ValueError(msg)

    sparkshed.register_predicate("broken", broken)
    frame = spark.sql(f"SELECT {hint('exact')} a.id FROM a JOIN b ON broken(a.x, b.x) AND {W}")
    with pytest.raises(StreamingQueryException, match="broken"):
        start(frame, folder).awaitTermination()


def test_one_plan_serves_one_query_at_a_time(feeds):
    spark, folder, _ = feeds
    frame = spark.sql(TEXT.format(hint=hint("grubjoin")))
    query = start(frame, folder, processingTime="1 second")
    try:
        with pytest.raises(sparkshed.ShedError, match="already runs in another streaming query"):
            start(frame, folder / "again")
    finally:
        query.stop()


def test_explain(feeds):
    spark, _, _ = feeds
    plan = sparkshed.explain(spark, TEXT.format(hint=hint("grubjoin")))
    assert "work=as the load allows" in plan
    assert "Hosts: 2, routing=dealt, master=a" in plan
    assert "Watermark: 4 s later behind the join, for its older rows" in plan
    assert "Control: every 5 s, harvest=lagrange, shred=0.1" in plan


def test_only_the_user_can_write_decisions():
    channel = Channel()
    channel.open()
    try:
        assert stat.S_IMODE(os.stat(channel.path).st_mode) == 0o700
        channel.publish({"version": 1, "decision": {"z": 1}})
        (file,) = Path(channel.path).iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        reader = ControlReader(channel.path, [3, 0])
        rows, offset = reader.read({})
        assert [row[:2] for row in rows] == [(3, -1), (0, -1)]
        assert offset["version"] == 1
        assert list(reader.read(offset)[0]) == []
        replayed = [json.loads(row[2]) for row in reader.readBetweenOffsets({}, offset)]
        assert replayed == [{"decision": {"z": 1}, "routing": None}] * 2
        Path(channel.path).chmod(0o770)
        with pytest.raises(PermissionError, match="TMPDIR"):
            reader.read({})
    finally:
        channel.close()
    assert not Path(channel.path).exists()


def test_a_later_run_keeps_what_a_router_was_told():
    channel = Channel()
    channel.open()
    try:
        decision, routing = {"version": 4}, {"number": 7}
        former = {"version": 9, "decision": decision, "routing": routing, "remembered": {"x": 1}}
        first = {"version": 0, "decision": {"version": 0}, "routing": None, "remembered": None}
        reader = ControlReader(channel.path, [0])
        assert list(reader.read(former)[0]) == []
        assert channel.resumed() == former
        channel.publish(first)
        rows, offset = reader.read(former)
        # The first decision of a run is newer than the last one of the run before.
        told = {"decision": {"version": 5}, "routing": routing}
        assert [json.loads(blob) for *_, blob in rows] == [told]
        assert offset == {**first, **told, "version": 10}
        assert list(reader.read(offset)[0]) == []
    finally:
        channel.close()


@pytest.mark.parametrize("strategy", ["gdj", "lru"])
def test_windows_with_a_limit(feeds, strategy):
    spark, folder, whole = feeds
    text = TEXT.format(hint=hint(strategy, "memory=40", "seed=3"))
    as_tables(spark, folder, ["a", "b"])
    batch = multiset(spark.sql(text))
    as_streams(spark, folder, ["a", "b"])
    plan = sparkshed.explain(spark, text)
    assert f"Memory: 40 rows, evict={strategy}, buffers=unified" in plan
    assert "Hosts: 1, routing=none" in plan
    query = finished(start(spark.sql(text), folder))
    history = sparkshed.history(query)
    assert history["window_rows"].max() <= 40
    assert history["a.evicted"].sum() + history["b.evicted"].sum() > 0
    assert set(history["memory"]) == {40}
    results = history["results"].sum()
    assert results < sum(whole.values())
    # Files hold as many rows of both streams, so rows of different files come out of order a little.
    assert abs(results / sum(batch.values()) - 1) < 0.2
