from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from argparse import ArgumentTypeError
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streaming.feeds import two_streams

import sparkshed
from sparkshed.bench.join import Timing, WrongResult, compare
from sparkshed.cli import bench, demo, inputs, main
from sparkshed.cli import sql as sql_command
from sparkshed.cli.comparing import compare as compare_statement
from sparkshed.cli.errors import CliError
from sparkshed.cli.streams import register_streams


def run_main(*argv: str) -> int:
    """The exit code, whether argparse or the command itself sets it."""
    try:
        return main.main(argv)
    except SystemExit as stop:
        return int(stop.code or 0)


def test_version(capsys):
    assert run_main("--version") == 0
    assert capsys.readouterr().out.strip() == f"sparkshed {version('sparkshed')}"


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_command_has_help(command, capsys):
    assert run_main(command, "--help") == 0
    assert f"usage: sparkshed {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "required: COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
        (["sql"], "one of the arguments FILE -e is required"),
        (["sql", "q.sql", "-e", "SELECT 1"], "not allowed with argument"),
        (["sql", "-e", "SELECT 1", "--table", "cam1"], "'cam1' is not NAME=PATH"),
        (["sql", "-e", "SELECT 1", "--limit", "many"], "'many' is no number of rows"),
        (["explain", "-e", "SELECT 1", "--mode", "loud"], "invalid choice: 'loud'"),
        (["bench"], "required: name"),
        (["bench", "sort"], "invalid choice: 'sort'"),
    ],
)
def test_argument_errors(argv, message, capsys):
    assert run_main(*argv) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sql", "explain"])
def test_missing_statement_file(command, tmp_path, capsys):
    assert run_main(command, str(tmp_path / "gone.sql")) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: cannot read")
    assert "gone.sql" in error and "Traceback" not in error


@pytest.mark.parametrize("command", ["sql", "explain"])
def test_missing_table_file(command, tmp_path, capsys):
    table = f"t={tmp_path / 'gone.parquet'}"
    assert run_main(command, "-e", "SELECT 1", "--table", table) == 2
    assert "gone.parquet does not exist" in capsys.readouterr().err


def test_empty_statement(capsys):
    assert run_main("sql", "-e", " ; ") == 2
    assert capsys.readouterr().err == "error: the statement is empty\n"


def test_output_is_never_overwritten(tmp_path, capsys):
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    assert run_main("sql", "-e", "SELECT 1", "--out", str(out)) == 2
    assert "exists already" in capsys.readouterr().err
    assert out.read_text() == "precious"


def test_output_of_unknown_format(tmp_path, capsys):
    assert run_main("sql", "-e", "SELECT 1", "--out", str(tmp_path / "out.xls")) == 2
    assert "unknown format" in capsys.readouterr().err


def raising(error: Exception):
    def run(args):
        raise error

    return run


def test_errors_about_the_query_have_no_traceback(monkeypatch, capsys):
    from pyspark.errors import AnalysisException

    for error in (sparkshed.ShedError("no such strategy"), AnalysisException("no such column")):
        monkeypatch.setattr(sql_command, "run", raising(error))
        assert run_main("sql", "-e", "SELECT 1") == 2
        shown = capsys.readouterr().err
        assert shown.startswith("error: ") and "no such" in shown
        assert "Traceback" not in shown


def test_other_errors_keep_their_traceback(monkeypatch):
    monkeypatch.setattr(sql_command, "run", raising(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run_main("sql", "-e", "SELECT 1")


def test_table_argument():
    assert inputs.table_argument("a=x/y=z.csv") == ("a", Path("x/y=z.csv"))
    for text in ("a", "a=", "=x", "a b=x", "1=x"):
        with pytest.raises(ArgumentTypeError, match="is not NAME=PATH"):
            inputs.table_argument(text)


@pytest.mark.parametrize(
    ("name", "format_"),
    [("a.parquet", "parquet"), ("a.CSV", "csv"), ("a.jsonl", "json"), ("a.json.gz", "json")],
)
def test_format_of_a_file(tmp_path, name, format_):
    (tmp_path / name).touch()
    assert inputs.format_of(tmp_path / name) == format_


def test_format_of_a_folder(tmp_path):
    folder = tmp_path / "table"
    (folder / "day=1").mkdir(parents=True)
    (folder / "_SUCCESS").touch()
    (folder / "day=1" / "part-0.csv").touch()
    assert inputs.format_of(folder) == "csv"
    (folder / "day=1" / "part-1.json").touch()
    with pytest.raises(CliError, match=r"several formats \(csv, json\)"):
        inputs.format_of(folder)


def test_format_unknown(tmp_path):
    (tmp_path / "a.xls").touch()
    with pytest.raises(CliError, match="unknown format"):
        inputs.format_of(tmp_path / "a.xls")
    with pytest.raises(CliError, match="unknown format"):
        inputs.format_of(tmp_path)


def test_tables_are_read_by_format(spark, tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n1,0.5\n2,1.5\n")
    (tmp_path / "b.jsonl").write_text('{"id": 7}\n')
    tables = [("cli_a", tmp_path / "a.csv"), ("cli_b", tmp_path / "b.jsonl")]
    inputs.register_tables(spark, tables)
    try:
        rows = spark.sql("SELECT cli_a.id, x, cli_b.id FROM cli_a CROSS JOIN cli_b ORDER BY 1").collect()
        assert [tuple(row) for row in rows] == [(1, 0.5, 7), (2, 1.5, 7)]
    finally:
        spark.catalog.dropTempView("cli_a")
        spark.catalog.dropTempView("cli_b")


def test_bench_refuses_to_time_wrong_results():
    with pytest.raises(WrongResult, match="disagree"):
        compare("w", {"spark": [(1.0, 5)], "sparkshed": [(0.1, 4)]})
    with pytest.raises(WrongResult, match="disagree"):
        compare("w", {"spark": [(1.0, 5), (1.0, 6)], "sparkshed": [(0.1, 5), (0.1, 5)]})


def test_bench_takes_medians():
    spark, shed = [(9.0, 5), (2.0, 5), (3.0, 5)], [(1.0, 5), (1.5, 5), (8.0, 5)]
    rows = compare("w", {"spark": spark, "sparkshed": shed})
    assert rows == [Timing("w", "spark", 3.0, 5, 1.0), Timing("w", "sparkshed", 1.5, 5, 2.0)]


def test_bench_json_has_the_documented_fields(monkeypatch, capsys):
    class NoSession:
        def __enter__(self):
            return None

        def __exit__(self, *error):
            return None

    rows = [Timing("w", "spark", 3.0, 5, 1.0), Timing("w", "sparkshed", 1.5, 5, 2.0)]
    monkeypatch.setattr(bench, "local_session", lambda master, **settings: NoSession())
    monkeypatch.setitem(bench.BENCHES, "join", lambda spark, rate, seconds, repeats: rows)
    assert run_main("bench", "join", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed[1] == {"workload": "w", "engine": "sparkshed", "seconds": 1.5, "results": 5, "ratio": 2.0}
    assert run_main("bench", "join") == 0
    assert capsys.readouterr().out.splitlines()[0].split() == list(printed[0])


def test_the_demo_takes_about_ninety_seconds_by_default():
    args = main.build_parser("demo").parse_args(["demo"])
    assert (args.rate, args.seconds, args.master) == (200, 75, "local[2]")
    assert args.run is demo.run


def test_a_wrong_column_is_reported_in_plain_words(tmp_path):
    (tmp_path / "t.csv").write_text("id,x\n1,0.5\n")
    command = [sys.executable, "-m", "sparkshed.cli.main", "sql", "-e", "SELECT nope FROM t"]
    done = subprocess.run(
        [*command, "--table", "t=t.csv", "--master", "local[1]"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "error: [UNRESOLVED_COLUMN" in done.stderr
    assert "Traceback" not in done.stderr
    assert "org.apache.spark" not in done.stderr
    assert not (tmp_path / "spark-warehouse").exists()


def test_memory_that_is_freed_is_used_again(tmp_path):
    seen = "SELECT reflect('java.lang.System', 'getenv', 'MALLOC_ARENA_MAX') AS arenas"
    command = [sys.executable, "-m", "sparkshed.cli.main", "sql", "-e", seen, "--master", "local[1]"]
    unset = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(command, cwd=tmp_path, env=unset, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\W*2\W*$", done.stdout, re.MULTILINE), done.stdout


def test_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "sparkshed.cli.main", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("sparkshed ")


HOME = (
    "import os; from sparkshed.cli.session import use_compiled_pyspark; use_compiled_pyspark(); "
    "home = os.environ['SPARK_HOME']; print(home, *sorted(os.listdir(home)))"
)


def test_python_processes_of_spark_import_compiled_files_unless_the_user_names_a_home(tmp_path):
    def run(environment):
        done = subprocess.run([sys.executable, "-c", HOME], env=environment, capture_output=True, text=True)
        return done.stdout.split()

    unset = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    home, *parts = run(unset)
    assert parts == ["bin", "jars"]
    assert not Path(home).exists(), "it goes with the process"
    assert run({**unset, "SPARK_HOME": str(tmp_path)}) == [str(tmp_path)]


def command_line(*words, cwd):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "sparkshed.cli.main", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def pair_of_folders(tmp_path_factory):
    """Streams `a` and `b` of four files each."""
    return two_streams(tmp_path_factory.mktemp("feeds"))


PAIR = (
    "SELECT /*+ SHED({}) */ a.id i, b.id j FROM a JOIN b ON a.k = b.k "
    "AND abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
)


def test_a_statement_beside_plain_spark(pair_of_folders, tmp_path):
    tables = [f"--table={name}={pair_of_folders / name}" for name in "ab"]
    done = command_line(
        "sql", "-e", PAIR.format("exact"), *tables, "--compare", "--master=local[1]", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"(\d+) rows in", done.stdout)
    assert rows[0] == rows[1] != "0"
    assert re.search(r"recall +100 %\nspeed +[\d.]+ times", done.stdout)


COUNTS = PAIR.replace("a.id i, b.id j", "count(*) n")
DROPPED = PAIR.format("randomdrop, 'budget=0.3'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAIR.format("exact").replace("/*+ SHED(exact) */", ""), "no SHED hint"),
        (COUNTS.format("randomdrop, 'budget=0.3'"), "has `Aggregate`"),
        (f"SELECT * FROM b LEFT ANTI JOIN ({DROPPED}) d ON b.id = d.j", "has `outer join`"),
        (f"SELECT * FROM b WHERE id NOT IN (SELECT j FROM ({DROPPED}) d)", "sub-query"),
        (f"CREATE TABLE t AS {DROPPED}", "takes a query, which can run twice"),
        (PAIR.format("exact") + " LIMIT 3", "`GlobalLimit`"),
    ],
)
def test_comparisons_that_say_nothing_are_refused(pair_of_folders, text, message, spark):
    for name in "ab":
        spark.read.parquet(str(pair_of_folders / name)).createOrReplaceTempView(name)
    sparkshed.enable(spark)
    try:
        with pytest.raises(CliError, match=message):
            compare_statement(spark, text)
    finally:
        sparkshed.disable(spark)


def test_exact_aggregates_are_compared(pair_of_folders, spark, capsys):
    for name in "ab":
        spark.read.parquet(str(pair_of_folders / name)).createOrReplaceTempView(name)
    sparkshed.enable(spark)
    assert compare_statement(spark, COUNTS.format("exact")) == 0
    assert re.search(r"with the hint +1 row in", capsys.readouterr().out)


def test_all_rows_of_a_micro_batch_count_and_some_are_shown(pair_of_folders, tmp_path):
    streams = [f"--stream={name}={pair_of_folders / name}" for name in "ab"]
    words = ["sql", "-e", PAIR.format("exact"), *streams, "--watermark=ts 2 seconds", "--limit=3"]
    done = command_line(*words, "--master=local[2]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (count,) = re.findall(r"^3 of (\d+) rows", done.stdout, re.M)
    assert f"{count} results, 100 % of the true answer\n" in done.stderr
    assert int(count) > 100


def test_each_join_of_a_statement_is_told_of(pair_of_folders, tmp_path):
    streams = [f"--stream={name}={pair_of_folders / name[0]}" for name in ("a", "b", "a2", "b2")]
    one = PAIR.format("exact")
    two = one.replace("a.", "a2.").replace("b.", "b2.").replace("FROM a JOIN b", "FROM a2 JOIN b2")
    words = ["sql", "-e", f"{one} UNION ALL {two}", *streams, "--watermark=ts 2 seconds", "--limit=3"]
    done = command_line(*words, "--master=local[2]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^join (\d): (\d+) results, 100 % of the true answer$", done.stderr, re.M)
    assert [number for number, _ in found] == ["1", "2"]
    assert found[0][1] == found[1][1]


def test_times_without_a_zone_can_have_a_watermark(spark, tmp_path):
    table = pa.table({"ts": pa.array([0, 1_000_000], pa.timestamp("us")), "k": [1, 1]})
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "1.parquet")
    args = argparse.Namespace(stream=[(name, tmp_path / name) for name in "ab"], watermark="ts 3 seconds")
    register_streams(spark, args)
    assert dict(spark.table("a").dtypes)["ts"] == "timestamp"


def test_followed_streams_end_quietly_by_ctrl_c(pair_of_folders, tmp_path):
    streams = [f"--stream={name}={pair_of_folders / name}" for name in "ab"]
    words = ["sql", "-e", PAIR.format("exact"), *streams, "--watermark=ts 2 seconds", "--follow"]
    command = [sys.executable, "-m", "sparkshed.cli.main", *words, "--checkpoint=state", "--out=found"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "found").glob("*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in told and "ERROR" not in told
    assert "Ctrl-C ends it" in told and "written to found" in told


def test_folders_as_streams(pair_of_folders, tmp_path):
    streams = [f"--stream={name}={pair_of_folders / name}" for name in "ab"]
    text = PAIR.format("exact, 'diffuse=none'")
    words = ["sql", "-e", text, *streams, "--watermark=ts 2 seconds", "--master=local[1]"]
    done = command_line(*words, "--out=found", "--checkpoint=state", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "100 % of the true answer" in done.stderr
    found = sum(pq.read_table(path).num_rows for path in (tmp_path / "found").glob("*.parquet"))
    assert f"{found} results" in done.stderr and found > 100
    watched = command_line("monitor", "state", "--once", cwd=tmp_path)
    assert "batch" in watched.stdout, watched.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stream=a=file.csv"], "a stream is a folder"),
        (["--watermark=ts 1 second"], "--watermark is for streams"),
        (["--compare", "--out=x.csv"], "keeps no rows"),
        (["--out=x.xls"], "unknown format"),
        (["--table=a=file.csv", "--table=A=file.csv"], "`a` is given twice"),
        (["--table=my-a=file.csv"], "names are of letters, digits and _"),
        (["--limit=-3"], "'-3' is no number of rows"),
    ],
)
def test_requests_that_make_no_sense_are_refused_before_spark_starts(
    words, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.csv").write_text("id\n1\n")
    assert run_main("sql", "-e", "SELECT 1", *words) == 2
    assert message in capsys.readouterr().err


def test_mistakes_in_hints_are_found_before_spark_starts(capsys, monkeypatch):
    monkeypatch.setattr("sparkshed.cli.sql.local_session", None)
    assert main.main(["sql", "-e", PAIR.format("grubjion")]) == 2
    assert "Did you mean `grubjoin`" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_every_command(shell, capsys):
    assert main.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for command in main.COMMANDS:
        assert command in text
    for word in ("watermark", "gdj-fig4", "scaling"):
        assert word in text


def test_bash_completes(tmp_path):
    script = command_line("completion", "bash", cwd=tmp_path).stdout
    ask = "COMP_WORDS=(sparkshed report --o); COMP_CWORD=2; _sparkshed; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["--out"], done.stderr


def test_output_that_nobody_reads_to_the_end(tmp_path):
    done = subprocess.run(
        f"{sys.executable} -m sparkshed.cli.main experiment | head -1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("command", main.COMMANDS)
def test_help_has_examples_that_are_understood(command):
    parser = main.build_parser(command)
    text = next(own for own in parser._actions if own.dest == "command").choices[command].epilog
    lines = [line.split("  #")[0].strip() for line in text.splitlines() if "sparkshed " in line]
    assert lines
    for line in lines:
        words = shlex.split(line.removeprefix("source <(").removesuffix(")"))
        words = words[1 : next((n for n, word in enumerate(words) if word in (">>", "|")), None)]
        assert main.build_parser(command).parse_args(words).command == command
