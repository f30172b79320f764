"""What users do with a streaming join: another stateful operator, any sink, sessions made from the first."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import sparkshed
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.streaming import Report
from sparkshed.spark.streaming import driver
from sparkshed.spark.streaming.figures import figures_of, numbers_of, observed_of, record_of, shares_of
from streaming.feeds import as_streams, as_tables, copied, multiset

W = "abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
TEXT = f"SELECT {{hint}} a.id i, b.id j, a.ts FROM a JOIN b ON abs(a.x - b.x) <= 2 AND {W}"
EXACT = "/*+ SHED(exact) */"


@pytest.fixture
def streams(enabled, four_files, tmp_path):
    """Two streams of two files, and the join of them."""
    copied(four_files, tmp_path, range(2))
    as_tables(enabled, tmp_path, ["a", "b"])
    whole = multiset(enabled.sql(TEXT.format(hint="")))
    as_streams(enabled, tmp_path, ["a", "b"])
    return enabled, tmp_path, whole


def test_rows_without_duplicates_go_to_a_function_that_joins_on(streams):
    spark, folder, whole = streams
    found, refused = Counter(), []

    def take(batch, number):
        batch.createOrReplaceTempView("batch")
        own = batch.sparkSession
        twice = "FROM batch p JOIN batch q ON p.i = q.i AND abs(p.ts - q.ts) <= INTERVAL 1 SECOND"
        joined = own.sql(f"SELECT {EXACT} p.i {twice}")
        assert joined.count() == own.sql(f"SELECT p.i {twice}").count() == batch.count()
        try:
            own.sql(f"SELECT /*+ SHED(nonsense) */ p.i {twice}")
        except sparkshed.ShedError as error:
            refused.append(error)
        found.update(row.i for row in batch.collect())

    frame = spark.sql(TEXT.format(hint=EXACT)).dropDuplicates(["i"])
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert set(found.values()) == {1}
    assert set(found) == {int(re.search(r"'i': (\d+)", row)[1]) for row in whole}
    assert refused, "a typo never runs as something else"


def test_a_new_session_writes_a_table(streams):
    spark, folder, whole = streams
    other = spark.newSession()
    as_streams(other, folder, ["a", "b"])
    for number, hint in enumerate([EXACT, "/*+ SHED(grubjoin, 'budget=1') */"]):
        frame = other.sql(TEXT.format(hint=hint))
        writer = frame.writeStream.option("checkpointLocation", str(folder / f"checkpoint{number}"))
        try:
            writer.trigger(availableNow=True).toTable(f"found{number}").awaitTermination()
            assert multiset(other.table(f"found{number}")) == whole
        finally:
            other.sql(f"DROP TABLE IF EXISTS found{number}")


def test_a_clock_that_shifts_is_warned_of(streams):
    spark, _, _ = streams
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.warns(UserWarning, match="local clock.*26 hours") as caught:
            spark.sql(TEXT.format(hint=EXACT))
        assert Path(caught[0].filename) == Path(__file__), "it points at the user's line"
        both = "a.ts BETWEEN b.ts - INTERVAL 4 SECONDS AND b.ts + INTERVAL 4 SECONDS"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            spark.sql(TEXT.replace(W, both).format(hint=EXACT))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_listeners_get_the_figures_of_the_history(streams):
    """The same numbers of some hosts, put together in SQL and in Python."""
    spark, _, _ = streams
    spark.sql(TEXT.format(hint="/*+ SHED(grubjoin) */"))
    plan = list(driver._controllers.values())[-1].plan
    rng = Random(4)
    shares = [
        Completeness(),
        Completeness(50.0, 10.0, 30.0, 4.0),
        Completeness(7.0, 0.0, 0.0, 2.0),
        Completeness(7.0, 3.0),
        Completeness(0.0, 900.0, 5.0, 1e3),
        Completeness(1e6, 0.5, 1e7, 10.0),
        Completeness(20.0, -0.5, 3.0, 1.0),
    ]
    for share in shares:
        reports = [report(rng, host, own) for host, own in enumerate([share, rng.choice(shares)])]
        rows = pa.table({"figures": [numbers_of(plan, own) for own in reports]})
        frame = spark.createDataFrame(rows)
        observed = frame.selectExpr(*(f"{text} AS {name}" for name, text in observed_of(plan).items()))
        together = reports[0].completeness + reports[1].completeness
        expected = record_of(plan, reports) | shares_of(together)
        found = observed.first().asDict()
        assert found == pytest.approx({name.replace(".", "_"): own for name, own in expected.items()})
    assert len({figure.name for figure in figures_of(plan)}) == len(figures_of(plan))


def report(rng: Random, host: int, share: Completeness) -> Report:
    """Whatever a host may say."""
    kinds = ("arrived", "joined", "late", "null_time", "shed", "expired", "evicted")
    tally = Tally.empty(2, 3)
    for direction in tally.directions:
        direction.rows = float(rng.randrange(100))
    return Report(
        host,
        rng.randrange(9),
        rng.random(),
        [{kind: rng.randrange(100) for kind in kinds} for _ in range(2)],
        [rng.randrange(1000) for _ in range(2)],
        rng.random() * 1e6,
        share,
        tally,
        rows=rng.randrange(100),
        seconds=rng.random(),
        figures={"beta": rng.random(), "unit": 1e-6, "fixed": 0.5, "full_0": 12.0},
    )
