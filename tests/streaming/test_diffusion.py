"""Routing that changes while a join runs: Spark's own answer, from as many hosts as were asked for."""

from __future__ import annotations

from random import Random

import pytest

import sparkshed
from sparkshed.planner.diffusion.loads import uneven
from sparkshed.planner.guide import Guide
from sparkshed.sql.errors import PlanError
from streaming.feeds import as_streams, as_tables, cuts, disordered, multiset, restless, rows_of, write

THREE = (
    "SELECT {hint} a.id i, b.id j, c.id l FROM a JOIN b ON abs(a.x - b.x) <= 2 JOIN c ON abs(b.x - c.x) <= 2 "
    "WHERE greatest(a.ts, b.ts, c.ts) <= least(a.ts + INTERVAL 4 SECONDS, b.ts + INTERVAL 4 SECONDS, "
    "c.ts + INTERVAL 4 SECONDS)"
)


@pytest.mark.parametrize("routing", ["atr:3", "ctr:3"])
def test_routing_that_changes_all_the_time_loses_and_doubles_nothing(enabled, tmp_path, monkeypatch, routing):
    spark, rng, files = enabled, Random(routing), 12
    for number, name in enumerate("abc"):
        table = disordered(rng, rows_of(rng, number, 30 * files, 3 * files), 1.9)
        write(tmp_path / name, table, cuts(rng, table.num_rows, files))
    as_tables(spark, tmp_path, list("abc"))
    whole = multiset(spark.sql(THREE.format(hint="")))
    as_streams(spark, tmp_path, list("abc"))
    monkeypatch.setattr(Guide, "observe", restless(rng))
    frame = spark.sql(THREE.format(hint=f"/*+ SHED(exact, 'diffuse={routing}') */"))
    query = frame.writeStream.format("memory").queryName("routed")
    query = (
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert multiset(spark.table("routed")) == whole
    assert all(own.numInputRows for own in query.recentProgress), "no batch is for the watermark alone"
    figures = sparkshed.history(query)
    assert sum(figures["results"]) == sum(whole.values())
    for name in "abc":
        arrived = sum(figures[f"{name}.arrived"])
        assert arrived == 30 * files
        assert sum(figures[f"{name}.joined"]) == arrived - sum(figures[f"{name}.late"])
    assert 0 < figures["routing_entries"].max() < 2000
    assert figures["copies"].max() > 1
    if routing == "atr:3":
        assert figures["master"].nunique() > 1
        assert figures["segment_seconds"].nunique() > 1


def test_hosts_of_a_router_share_a_budget_by_what_they_have_to_do(enabled, tmp_path):
    spark, rng, files = enabled, Random(8), 10
    for number, name in enumerate("abc"):
        table = rows_of(rng, number, 40 * files, 2 * files)
        write(tmp_path / name, table, [40] * (files - 1))
    as_streams(spark, tmp_path, list("abc"))
    done = {}
    for name, hint in {"all": "exact", "some": "grubjoin, 'budget=0.3', 'adapt=1 ms', 'seed=4'"}.items():
        frame = spark.sql(THREE.format(hint=f"/*+ SHED({hint}, 'diffuse=atr:3') */"))
        writer = frame.writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        done[name] = sparkshed.history(query)
    assert sum(done["some"]["results"]) > 0.15 * sum(done["all"]["results"])
    shares = [sum(own) for own in zip(*done["some"]["host_work"], strict=True)]
    assert 0.2 < sum(done["some"]["work"]) / sum(done["all"]["work"]) < 0.4
    assert uneven(shares) < 0.2


def test_tables_do_not_travel(enabled, tmp_path):
    rng = Random(3)
    for number, name in enumerate("abc"):
        write(tmp_path / name, rows_of(rng, number, 20, 4), [10])
    as_tables(enabled, tmp_path, ["b"])
    as_streams(enabled, tmp_path, ["a", "c"])
    with pytest.raises(PlanError, match="`b` is a table"):
        enabled.sql(THREE.format(hint="/*+ SHED(exact, 'diffuse=ctr') */"))


def test_rows_of_a_table_are_on_every_host(enabled, tmp_path, monkeypatch):
    spark, rng = enabled, Random(6)
    for number, name in enumerate("abc"):
        write(tmp_path / name, rows_of(rng, number, 200, 20), [20] * 9)
    as_tables(spark, tmp_path, list("abc"))
    whole = multiset(spark.sql(THREE.format(hint="")))
    as_streams(spark, tmp_path, ["a", "c"])
    monkeypatch.setattr(Guide, "observe", restless(rng))
    frame = spark.sql(THREE.format(hint="/*+ SHED(exact, 'diffuse=atr:3') */"))
    query = frame.writeStream.format("memory").queryName("beside_a_table").trigger(availableNow=True)
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    assert multiset(spark.table("beside_a_table")) == whole
    assert sum(whole.values()) > 100
