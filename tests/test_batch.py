"""Batch execution: groups, skew, replication, and bounded memory, on a real session."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

import sparkshed
from sparkshed.spark.sampling import _known_bytes

JOIN = (
    "SELECT {hint} l.id, r.id FROM l JOIN r ON l.k = r.k AND l.x < r.x + 3 "
    "AND l.ts BETWEEN r.ts - INTERVAL 4 SECONDS AND r.ts + INTERVAL 2 SECONDS"
)


def rows(frame) -> Counter:
    return Counter(map(tuple, frame.collect()))


def make_pair(spark, key: str, count: int = 3000, spread: int = 1800) -> None:
    for name, factor in (("l", 7), ("r", 11)):
        spark.range(count).selectExpr(
            "id",
            f"timestamp_millis(id * {factor} * 997 % ({spread} * 1000)) AS ts",
            f"{key} AS k",
            f"CAST(id * {factor} % 23 AS INT) AS x",
        ).createOrReplaceTempView(name)


@pytest.fixture(scope="module")
def answer(spark) -> Counter:
    """Spark's answer for a pair with forty keys."""
    make_pair(spark, "id % 40")
    return rows(spark.sql(JOIN.format(hint="")))


def plan_line(spark, text: str, name: str) -> str:
    return next(line.strip() for line in sparkshed.explain(spark, text).splitlines() if name in line)


@pytest.mark.parametrize(
    ("diffuse", "routing"),
    [
        ("none", "Groups: 1, routing=none"),
        ("hash:3", "Groups: 3, routing=hash"),
        ("atr:5", "Groups: 5, routing=atr"),
        ("atr", "Groups: 2, routing=atr"),
        ("ctr:5", "Groups: 5, routing=ctr"),
        ("hash", "Groups: 2, routing=hash"),
    ],
)
def test_every_routing_has_sparks_answer(spark, answer, diffuse, routing):
    make_pair(spark, "id % 40")
    hinted = JOIN.format(hint=f"/*+ SHED(exact, 'diffuse={diffuse}') */")
    assert plan_line(spark, hinted, "Groups").startswith(routing)
    assert sum(answer.values()) > 500
    assert rows(sparkshed.query(spark, hinted)) == answer


def test_inputs_of_any_size_are_planned_alike(spark, answer, monkeypatch):
    """Small inputs are fetched whole, large ones are counted and sampled by Spark."""
    make_pair(spark, "id % 40")
    hinted = JOIN.format(hint="/*+ SHED(exact, 'seed=3') */")
    jobs, found = [], []
    for limit in (1 << 40, 0):
        monkeypatch.setattr("sparkshed.spark.sampling.SMALL_BYTES", limit)
        before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
        lines = sparkshed.explain(spark, hinted).splitlines()
        jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) - before)
        found.append([line for line in lines if "Stream:" in line or "Groups:" in line])
        assert rows(sparkshed.query(spark, hinted)) == answer
    assert jobs[0] < jobs[1]
    assert found[0] == found[1]
    assert "rows=3000" in found[0][-1]


def test_what_may_be_large_is_not_fetched_whole(spark, tmp_path):
    def known(frame) -> int | None:
        return _known_bytes(frame._jdf.queryExecution().optimizedPlan())

    numbers = spark.range(1000)
    assert known(numbers.where("id % 2 = 0").selectExpr("id + 1 AS x")) < 100_000
    assert known(numbers.selectExpr("explode(sequence(1, 1000)) AS x")) is None
    assert known(numbers.crossJoin(spark.range(1000))) is None
    grown = numbers.selectExpr("explode(sequence(1, 10)) AS x").cache()
    assert known(grown) is None
    assert grown.count() == 10_000
    assert known(grown) >= 40_000
    grown.unpersist()
    numbers.write.parquet(str(tmp_path / "numbers"))
    assert known(spark.read.parquet(str(tmp_path / "numbers"))) is None


def test_few_rows_make_one_group(spark):
    make_pair(spark, "id % 40", count=300)
    assert plan_line(spark, JOIN.format(hint="/*+ SHED(exact) */"), "Groups").startswith("Groups: 1,")


def test_a_skewed_key_is_split_in_time(spark):
    """All rows share one key: hashing would put them into one group."""
    make_pair(spark, "IF(id % 50 = 0, id, 7)")
    hinted = JOIN.format(hint="/*+ SHED(exact) */")
    assert "routing=atr" in plan_line(spark, hinted, "Groups")
    hashed = JOIN.format(hint="/*+ SHED(exact, 'diffuse=hash') */")
    largest = {}
    for name, text in (("auto", hinted), ("hash", hashed)):
        found = sparkshed.query(spark, text).groupBy(F.spark_partition_id()).count().collect()
        largest[name] = max(row["count"] for row in found) / sum(row["count"] for row in found)
    assert largest["hash"] > 0.95
    assert largest["auto"] < 0.6
    assert rows(sparkshed.query(spark, hinted)) == rows(spark.sql(JOIN.format(hint="")))


def test_one_sided_bounds_reach_every_segment(spark):
    make_pair(spark, "id % 40", count=1500, spread=600)
    text = "SELECT {hint} l.id, r.id FROM l JOIN r ON l.k = r.k AND l.x = r.x AND l.ts >= r.ts"
    expected = rows(spark.sql(text.format(hint="")))
    assert sum(expected.values()) > 500
    for diffuse in ("atr:4", "ctr:4", "auto"):
        hinted = text.format(hint=f"/*+ SHED(exact, 'diffuse={diffuse}') */")
        assert rows(sparkshed.query(spark, hinted)) == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"])
def test_segments_of_every_time_type(spark, type_, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for name, factor in (("l", 7), ("r", 11)):
            spark.range(400).selectExpr(
                "id",
                f"CAST(timestamp_seconds(1711753200 + id * {factor} * 977 % 400000) AS {type_}) AS ts",
                f"id * {factor} % 23 AS x",
            ).createOrReplaceTempView(name)
        window = "INTERVAL 1 DAY" if type_ == "DATE" else "INTERVAL 90 MINUTES"
        text = (
            "SELECT {hint} l.id, r.id FROM l JOIN r ON abs(l.x - r.x) <= 1 "
            f"AND l.ts BETWEEN r.ts - {window} AND r.ts + {window}"
        )
        expected = rows(spark.sql(text.format(hint="")))
        assert sum(expected.values()) > 100
        for diffuse in ("atr:6", "ctr:6"):
            hinted = text.format(hint=f"/*+ SHED(exact, 'diffuse={diffuse}') */")
            assert rows(sparkshed.query(spark, hinted)) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_payload_of_every_type_survives(spark):
    spark.range(60).selectExpr(
        "id",
        "timestamp_seconds(id % 20) AS ts",
        "CAST(NULL AS BIGINT) AS nothing",
        "CAST(id AS TINYINT) AS tiny",
        "IF(id % 3 = 0, NULL, id) AS big",
        "CAST(id / 7 AS FLOAT) AS f",
        "CAST(id / 7 AS DECIMAL(30, 10)) AS wide",
        "concat('é', id) AS s",
        "CAST(concat('x', id) AS BINARY) AS raw",
        "id % 2 = 0 AS flag",
        "DATE '2024-01-01' + CAST(id AS INT) AS day",
        "CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ) AS local",
        "make_dt_interval(0, 0, 0, id) AS wait",
        "array(id, NULL, 3) AS list",
        "named_struct('a', id, 'b', array('x', NULL)) AS nested",
        "map('k', id) AS pairs",
    ).createOrReplaceTempView("wide_rows")
    text = (
        "SELECT {hint} * FROM wide_rows l JOIN wide_rows r "
        "ON l.ts BETWEEN r.ts - INTERVAL 1 SECOND AND r.ts AND l.id < r.id"
    )
    expected = spark.sql(text.format(hint=""))
    found = sparkshed.query(spark, text.format(hint="/*+ SHED(exact) */"))
    assert found.schema.simpleString() == expected.schema.simpleString()
    as_text = F.to_json(F.struct("*"))
    names = [f"c{n}" for n in range(len(found.columns))]
    found, expected = (rows(frame.toDF(*names).select(as_text)) for frame in (found, expected))
    assert found == expected
    assert sum(found.values()) > 100


def test_a_type_that_cannot_reach_the_workers_is_named(spark):
    spark.range(5).selectExpr(
        "id", "timestamp_seconds(id) AS ts", "make_ym_interval(1, CAST(id AS INT)) AS age"
    ).createOrReplaceTempView("aged")
    text = "SELECT /*+ SHED(exact) */ {} FROM aged l JOIN aged r ON l.id = r.id AND l.ts = r.ts"
    with pytest.raises(sparkshed.PlanError, match="column l.age has the type interval year to month"):
        sparkshed.query(spark, text.format("l.age"))
    assert sparkshed.query(spark, text.format("l.id")).count() == 5


def test_a_null_time_under_greatest_and_least_is_refused(spark, tmp_path: Path):
    """They would let such a row join without bound, so it may not be dropped in silence."""
    flag = tmp_path / "without-times"

    def times(batches):
        for batch in batches:
            seconds = [None if flag.exists() else i * 1_000_000 for i in batch.column(0).to_pylist()]
            stamps = pa.array(seconds, pa.timestamp("us", "UTC"))
            yield pa.record_batch([batch.column(0), stamps], ["id", "ts"])

    spark.range(10).mapInArrow(times, "id BIGINT, ts TIMESTAMP").createOrReplaceTempView("changing")
    text = (
        "SELECT /*+ SHED(exact) */ l.id FROM changing l JOIN changing r ON l.id = r.id "
        "WHERE greatest(l.ts, r.ts) <= least(l.ts + INTERVAL 1 SECOND, r.ts + INTERVAL 1 SECOND)"
    )
    frame = sparkshed.query(spark, text)
    assert frame.count() == 10
    flag.touch()
    with pytest.raises(PythonException, match="NullTimeError"):
        frame.collect()
    with pytest.raises(sparkshed.BoundError, match="greatest/least"):
        sparkshed.query(spark, text)


def worker_peaks() -> dict[str, int]:
    """Peak resident memory of Spark's Python workers, in bytes."""
    peaks = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_text()
            if "pyspark" in command and "daemon" in command:
                status = (folder / "status").read_text()
                peaks[folder.name] = int(status.split("VmHWM:")[1].split()[0]) * 1024
    return peaks


def test_forty_million_results_in_bounded_memory(spark):
    for number, name in enumerate("abc"):
        spark.range(1600).selectExpr(
            "id", f"timestamp_micros(id * 1000 * {number + 1}) AS ts", "CAST(id % 10 AS INT) AS k"
        ).createOrReplaceTempView(f"many_{name}")
    text = (
        "SELECT /*+ SHED(exact) */ count(*), sum(a.id), sum(b.id), sum(c.id) "
        "FROM many_a a JOIN many_b b ON a.k = b.k JOIN many_c c ON b.k = c.k "
        "WHERE greatest(a.ts, b.ts, c.ts) <= "
        "least(a.ts + INTERVAL 20 SECONDS, b.ts + INTERVAL 20 SECONDS, c.ts + INTERVAL 20 SECONDS)"
    )
    (found,) = sparkshed.query(spark, text).collect()
    per_id = 160 * 160 * sum(range(1600))
    assert tuple(found) == (40_960_000, per_id, per_id, per_id)
    peaks = worker_peaks()
    assert peaks
    assert max(peaks.values()) < 2 << 30


@pytest.mark.parametrize("start", ["9999-12-30 20:00:00", "0001-01-01 02:00:00"])
@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"])
def test_times_at_the_ends_of_the_calendar(spark, type_, start):
    step = "INTERVAL 10 MINUTES" if type_ != "DATE" else "INTERVAL 6 HOURS"
    spark.sql(
        f"SELECT id, CAST(TIMESTAMP_NTZ '{start}' + CAST(id AS INT) * {step} AS {type_}) AS ts "
        "FROM range(150)"
    ).createOrReplaceTempView("edge")
    window = "INTERVAL 3 DAYS" if type_ == "DATE" else "INTERVAL 5 HOURS"
    text = (
        "SELECT {hint} l.id, r.id FROM edge l JOIN edge r ON l.id % 5 = r.id % 5 "
        f"AND l.ts BETWEEN r.ts - {window} AND r.ts + {window}"
    )
    expected = rows(spark.sql(text.format(hint="")))
    assert sum(expected.values()) > 150
    hinted = text.format(hint="/*+ SHED(exact, 'diffuse=atr:4') */")
    assert rows(sparkshed.query(spark, hinted)) == expected


@pytest.mark.parametrize("ansi", ["TRUE", "false"])
@pytest.mark.parametrize(
    "condition", ["l.i - r.i <= 1", "l.i <= r.i + 1", "abs(l.i - r.i) <= 1", "l.i - r.i < 1.5"]
)
def test_whole_numbers_wrap_only_without_ansi(spark, condition, ansi):
    values = (
        "(-2147483648), (-2147483647), (-1), (0), (1), (2147483647)" if ansi == "false" else "(-9), (0), (1)"
    )
    spark.sql(f"SELECT i, timestamp_seconds(0) AS ts FROM VALUES {values} AS v(i)").createOrReplaceTempView(
        "ends"
    )
    text = f"SELECT {{hint}} l.i, r.i FROM ends l JOIN ends r ON l.ts = r.ts AND {condition}"
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        expected = rows(spark.sql(text.format(hint="")))
        assert sum(expected.values()) >= 3
        assert rows(sparkshed.query(spark, text.format(hint="/*+ SHED(exact) */"))) == expected
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+02:00"])
def test_payload_in_other_zones(spark, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        spark.range(200).selectExpr(
            "id",
            "timestamp_seconds(1729990000 + id * 60) AS ts",
            "array(timestamp_seconds(1729990000 + id * 60)) AS list",
            "named_struct('at', timestamp_seconds(id), 'n', map('k', timestamp_seconds(id))) AS nested",
        ).createOrReplaceTempView("zoned")
        text = (
            "SELECT {hint} l.ts, l.list, r.nested FROM zoned l JOIN zoned r ON l.list = r.list "
            "AND l.ts - r.ts <= INTERVAL 20 MINUTES AND r.ts <= l.ts + INTERVAL 2 HOURS"
        )
        expected = Counter(map(str, spark.sql(text.format(hint="")).collect()))
        assert sum(expected.values()) >= 200
        found = sparkshed.query(spark, text.format(hint="/*+ SHED(exact) */"))
        assert Counter(map(str, found.collect())) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_tiny_basic_window_still_ends(spark):
    make_pair(spark, "id % 4", count=60, spread=600)
    text = JOIN.format(hint="/*+ SHED(exact, 'basic=1 us') */").replace("4 SECONDS", "10 MINUTES")
    plain = JOIN.format(hint="").replace("4 SECONDS", "10 MINUTES")
    assert rows(sparkshed.query(spark, text)) == rows(spark.sql(plain))


def test_strings_that_are_not_utf8(spark):
    spark.sql(
        "SELECT id, timestamp_seconds(id) AS ts, "
        "CAST(unhex(IF(id % 2 = 0, 'FFFE', '61')) AS STRING) AS s FROM range(20)"
    ).createOrReplaceTempView("raw")
    text = (
        "SELECT {hint} l.id, r.id FROM raw l JOIN raw r ON l.s = r.s "
        "AND (l.s < 'b' OR l.s > r.s OR l.id < 10) AND abs(l.ts - r.ts) <= INTERVAL 3 SECONDS"
    )
    expected = rows(spark.sql(text.format(hint="")))
    assert sum(expected.values()) > 40
    assert rows(sparkshed.query(spark, text.format(hint="/*+ SHED(exact) */"))) == expected
