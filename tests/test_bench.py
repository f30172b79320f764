from __future__ import annotations

import json
import operator
import time
from dataclasses import replace

import numpy as np
import polars
import pytest

from sparkshed.bench import cases, duckdb_peer, growth, kernels, memory, policies, spark_side, targets
from sparkshed.bench.cases import CASES, Case
from sparkshed.bench.jobs import Job, Outcome, Stopped, call_alone, write_tables
from sparkshed.bench.report import table
from sparkshed.bench.timing import LONG_SECONDS, Run, WrongResult, repeated
from sparkshed.bench.worker import run_job
from sparkshed.cli import bench, main

#: Every workload; the two sizes of one band join are the same when they are small. Only the first is also
#: run from the same text everywhere, to save time.
SMALL = [replace(case.scaled(0.05), same_sql=case is CASES[0]) for case in CASES if case.name != "band3-500"]
FIELDS = {"workload", "engine", "seconds", "results", "ratio_to_sparkshed", "compared_with", "note"}


@pytest.fixture(scope="module")
def launch(spark):
    """Runs jobs in this process."""
    return lambda job: Outcome(list(run_job(job, spark)))


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_all_engines_agree(case, launch):
    rows = kernels.run(launch, [case], repeats=1)
    expected = [e for e in kernels.ENGINES if case.same_sql or not e.endswith("same-sql")]
    assert [row.engine for row in rows] == expected
    assert len({row.results for row in rows}) == 1
    assert rows[0].results > 0, "a workload without results proves nothing"
    for row in rows:
        assert set(row.as_dict()) == FIELDS
        assert row.seconds > 0 and row.note is None
        assert (row.ratio_to_sparkshed == 1) or row.engine != row.compared_with


@pytest.mark.parametrize("kind", cases.KINDS)
def test_tables_are_repeatable_by_seed(kind):
    case = Case("t", kind, 2, 20, 5, 2, 1)
    assert all(a.equals(b) for a, b in zip(case.tables(), case.tables(), strict=True))
    first, second = case.tables()
    assert first.num_rows == second.num_rows == 100
    assert first["id"].to_pylist() == list(range(100))
    assert not first.equals(second)


def test_a_process_runs_a_job_on_one_thread(tmp_path):
    case = SMALL[0]
    write_tables(case.tables(), tmp_path)
    with kernels.Processes() as launch:
        found = {engine: launch(Job(engine, case, tmp_path, 2)) for engine in ("duckdb", "polars")}
    assert [len(outcome.runs) for outcome in found.values()] == [2, 2]
    assert found["duckdb"].runs[0].results == found["polars"].runs[0].results
    assert call_alone(polars.thread_pool_size) == 1


def test_a_run_that_takes_too_long_is_stopped(tmp_path):
    case = Case("slow", "band", 3, 400, 60, 20, 1)
    write_tables(case.tables(), tmp_path)
    with kernels.Processes(limit=0.2) as launch:
        outcome = launch(Job("duckdb-same-sql", case, tmp_path, 1))
    assert outcome == Outcome([], "stopped: took longer than 0.2 s")
    with pytest.raises(Stopped, match="longer than"):
        call_alone(time.sleep, 60, limit=0.2)


def test_a_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call_alone(operator.truediv, 1, 0)


def test_a_stopped_peer_gets_a_row_with_a_note():
    own, note = Outcome([Run(2.0, 7)]), "stopped: took longer than 600 s"
    rows = kernels.rows_of("band3-200", {"sparkshed-sql": own, "spark": Outcome([], note)})
    assert rows[1] == kernels.Row("band3-200", "spark", None, None, None, "sparkshed-sql", note)
    (target,) = targets.targets(rows, 600)
    assert (target.reached, target.met) == (300, True)


def test_rows_refuse_different_counts():
    outcomes = {"sparkshed-engine": Outcome([Run(1.0, 7)]), "duckdb": Outcome([Run(1.0, 8)])}
    with pytest.raises(WrongResult, match="disagree"):
        kernels.rows_of("w", outcomes)


def test_targets_say_what_was_missed():
    outcomes = {
        "sparkshed-engine": Outcome([Run(1.0, 7)]),
        "duckdb": Outcome([Run(7.0, 7)]),
        "duckdb-same-sql": Outcome([Run(7.0, 7)]),
        "polars": Outcome([Run(1.5, 7)]),
    }
    found = targets.targets(kernels.rows_of("band3-500", outcomes), 600)
    assert [(t.engine, t.least, t.reached, t.met) for t in found] == [
        ("duckdb", 1, 7.0, True),
        ("duckdb-same-sql", 8, 7.0, False),
        ("polars", 1, 1.5, True),
    ]
    unknown = targets.targets(kernels.rows_of("sets", {"duckdb": outcomes["duckdb"]}), 600)
    assert unknown[0].met is None


def test_long_runs_are_not_repeated(monkeypatch):
    ticks = iter([0.0, LONG_SECONDS + 1.0])
    monkeypatch.setattr("sparkshed.bench.timing.time.perf_counter", lambda: next(ticks))
    assert list(repeated(lambda: 5, 3)) == [Run(LONG_SECONDS + 1.0, 5)]


def test_peers_get_the_bounds_of_the_case():
    case = Case("t", "band", 3, 10, 10, 2.5, 0.5)
    assert "BETWEEN c2.x - 0.5 AND c2.x + 0.5" in duckdb_peer.sql(case)
    assert "<= 2500000" in duckdb_peer.sql(case)
    text = spark_side.fastest_sql(case)
    assert "c1.x BETWEEN c2.x - 0.5 AND c2.x + 0.5" in text and "abs(c1.x" not in text
    assert "abs(unix_micros(c2.ts) - unix_micros(c3.ts)) <= 2500000" in text


def test_exponents():
    sizes = (1.0, 2.0, 4.0)
    by_rate = [growth.Cell("rate", n, 20, 0.5 * n**2.5, int(7 * n**3), 0, int(9 * n**3)) for n in sizes]
    by_window = [growth.Cell("window", 9, n, n, int(n**2), 0, int(n**2)) for n in sizes]
    rate, window = growth.exponents(by_rate + by_window)
    assert (rate.seconds, rate.results, rate.limit) == (2.5, 3, 3)
    assert (window.seconds, window.work, window.limit) == (1, 2, 2)


def test_growth_counts_exact_work(launch, monkeypatch):
    monkeypatch.setattr(growth, "RATES", (100, 200))
    monkeypatch.setattr(growth, "WINDOWS", (20,))
    monkeypatch.setattr(growth, "call_alone", lambda function, *arguments: function(*arguments))
    cells = growth.run(launch, scale=0.2)
    assert [(cell.varied, cell.rate, cell.window) for cell in cells] == [
        ("rate", 20, 20),
        ("rate", 40, 20),
        ("window", 20, 20),
    ]
    assert cells[0].results == 939
    assert all(cell.work >= cell.comparisons > 0 for cell in cells)


@pytest.mark.parametrize("kind", memory.WINDOWS)
def test_probes_match_nothing_in_the_window(kind, launch, monkeypatch):
    monkeypatch.setattr(memory, "call_alone", lambda function, *arguments: function(*arguments))
    peak = memory._by_rows(launch, kind, 0.01)
    assert peak.per == "window rows" and peak.payload_mb > 0
    case = memory.WINDOWS[kind].scaled(0.01)
    values = case.tables()[1].column(1)
    moved = memory.apart(case.kind, case.tables()[1]).column(1)
    assert moved.type == values.type and len(moved) == len(values)
    assert not np.array_equal(moved.to_pylist(), values.to_pylist())


def test_kernels_command_prints_rows(monkeypatch, capsys):
    rows = kernels.rows_of(
        "sets", {"sparkshed-engine": Outcome([Run(1.0, 7)]), "duckdb": Outcome([Run(4.0, 7)])}
    )
    given = {}

    def run(launch, cases, engines, repeats, say):
        given.update(cases=[case.rate for case in cases], engines=engines)
        return rows

    monkeypatch.setitem(bench.BENCHES, "kernels", run)
    arguments = ["bench", "kernels", "--workload", "sets", "--engine", "duckdb", "--scale", "0.1"]
    assert main.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [row.as_dict() for row in rows]
    assert given == {"cases": [50], "engines": ["duckdb"]}
    assert main.main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith("yes")


def test_policies_are_timed_beside_fifo(capsys):
    assert main.main(["bench", "policies", "--scale", "0.1", "--repeats", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    for data in policies.workloads(0.1):
        own = {row["policy"]: row for row in rows if row["workload"] == data.name}
        assert set(own) == {"none", *policies.POLICIES}
        assert own["fifo"]["over_fifo"] == 1
        assert all(0 < row["results"] <= own["none"]["results"] and row["micros"] > 0 for row in own.values())
        assert own["gdj"]["results"] > own["fifo"]["results"]


def test_a_table_leaves_out_empty_columns():
    rows = [
        {"name": "a", "seconds": 1.0, "met": True, "note": None},
        {"name": "bc", "seconds": None, "met": False, "note": None},
    ]
    assert table(rows).splitlines() == ["name  seconds  met", "a       1.000  yes", "bc              NO"]
