"""The process is killed again and again, and so are its workers: the sink has every row once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from sparkshed.bench.processes import below
from streaming.crash_child import TEXT
from streaming.feeds import as_tables, cuts, disordered, multiset, rows_of, write

CHILD = Path(__file__).with_name("crash_child.py")


def workers(pid: int) -> list[int]:
    """Python workers below a process."""
    found = []
    for own in below(pid):
        try:
            command = Path(f"/proc/{own}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"pyspark.daemon" in command:
            found.append(own)
    return found


def committed(folder: Path) -> int:
    """How many micro-batches have ended."""
    commits = folder / "checkpoint" / "commits"
    return sum(own.name.isdigit() for own in commits.iterdir()) if commits.exists() else 0


def live_and_die(folder: Path, rng: Random, seconds: float | None, batches: int = 0) -> int:
    """Run the child until it is done, or kill it.

    Args:
        folder: Of the child.
        rng: Decides which workers die, and when.
        seconds: When it is killed, from the moment in which its query started; None lets it live.
        batches: Micro-batches that it is to end before that moment.
    """
    wanted = committed(folder) + batches
    (folder / "started").unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        child = subprocess.Popen([sys.executable, str(CHILD), str(folder)], stdout=log, stderr=log)
    killed = 0
    try:
        while child.poll() is None and not ((folder / "started").exists() and committed(folder) >= wanted):
            time.sleep(0.05)
        deadline = time.monotonic() + (seconds if seconds is not None else 600)
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            # About once in ten seconds a worker dies.
            if seconds is not None and rng.random() < 0.005:
                for victim in rng.sample(found := workers(child.pid), min(1, len(found))):
                    os.kill(victim, signal.SIGKILL)
                    killed += 1
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return killed


def test_a_process_that_is_killed_loses_and_doubles_nothing(spark, tmp_path, pytestconfig):
    rng = Random(11)
    kills, files = (25, 60) if pytestconfig.getoption("--long") else (1, 6)
    for number, name in enumerate("abc"):
        table = disordered(rng, rows_of(rng, number, 20 * files, 2 * files), 1.9)
        write(tmp_path / name, table, cuts(rng, table.num_rows, files))
    as_tables(spark, tmp_path, ["a", "b", "c"])
    whole = multiset(spark.sql(TEXT.format(hint="")))
    deaths = workers_killed = 0
    moments = set()
    while deaths < kills and not (tmp_path / "done").exists():
        workers_killed += live_and_die(tmp_path, rng, rng.uniform(0, 4), rng.choice([0, 1, 1, 2]))
        deaths += not (tmp_path / "done").exists()
        moments.add(committed(tmp_path))
    live_and_die(tmp_path, rng, None)
    log = (tmp_path / "log").read_text(errors="replace")[-3000:]
    assert (tmp_path / "done").exists(), log
    assert multiset(spark.read.parquet(str(tmp_path / "out"))) == whole
    assert sum(whole.values()) > 50 * files
    assert deaths == kills, f"only {deaths} deaths before it was done"
    assert len(moments) > kills / 3, f"it died again and again at the same place: {sorted(moments)}"
    print(f"{deaths} deaths, {workers_killed} workers killed, {sum(whole.values())} rows")
