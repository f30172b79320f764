"""The process is killed again and again, and so are its workers: sinks have every row once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from sparkshed.bench.processes import below
from streaming.crash_child import EXACT, MIXED, ORDERED, STATEMENTS
from streaming.feeds import (
    as_tables,
    committed,
    cuts,
    cuts_by_time,
    disordered,
    multiset,
    rows_of,
    write,
)

CHILD = Path(__file__).with_name("crash_child.py")
#: Without --long.
FEW = ["atr", "ctr", "dual", "dual-sheds", "gdj"]


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


def ended(folder: Path, names: list[str]) -> int:
    """Micro-batches of all queries."""
    return sum(committed(folder / name / "checkpoint") for name in names)


def live_and_die(folder: Path, names: list[str], rng: Random, seconds: float | None, batches: int = 0) -> int:
    """Run the child until it is done, or kill it.

    Args:
        folder: Of the child.
        names: What it joins.
        rng: Decides which workers die, and when.
        seconds: When it is killed, from the moment in which its query started; None lets it live.
        batches: Micro-batches that it is to end before that moment.
    """
    wanted = ended(folder, names) + batches
    (folder / "started").unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        child = subprocess.Popen([sys.executable, str(CHILD), str(folder), *names], stdout=log, stderr=log)
    killed = 0
    try:
        while child.poll() is None and not ((folder / "started").exists() and ended(folder, names) >= wanted):
            time.sleep(0.05)
        deadline = time.monotonic() + (seconds if seconds is not None else 600)
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            # About once in two seconds a worker dies.
            if seconds is not None and rng.random() < 0.025:
                for victim in rng.sample(found := workers(child.pid), min(1, len(found))):
                    os.kill(victim, signal.SIGKILL)
                    killed += 1
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return killed


def test_a_process_that_is_killed_loses_and_doubles_nothing(enabled, tmp_path, pytestconfig):
    spark, rng = enabled, Random(11)
    long = pytestconfig.getoption("--long")
    names, kills, files = (list(STATEMENTS), 25, 30) if long else (FEW, 1, 4)
    seconds = 4.0 * files
    for number, name in enumerate(MIXED):
        table = disordered(rng, rows_of(rng, number, 20 * files, 2 * files), 1.9)
        write(tmp_path / name, table, cuts(rng, table.num_rows, files))
    for number, name in enumerate(ORDERED):
        table = rows_of(rng, number, 25 * files, seconds)
        write(tmp_path / name, table, cuts_by_time(table, seconds, files))
    as_tables(spark, tmp_path, [*MIXED, *ORDERED])
    wholes = {name: multiset(spark.sql(STATEMENTS[name].text(STATEMENTS[name].whole))) for name in names}
    deaths = workers_killed = 0
    moments = set()
    while deaths < kills and not (tmp_path / "done").exists():
        # Each life has its share of the micro-batches that are left, about, however fast the machine is.
        left = len(names) * files - ended(tmp_path, names)
        batches = rng.randrange(max(1, left // (kills - deaths + 1)))
        workers_killed += live_and_die(tmp_path, names, rng, rng.uniform(0, 1), batches)
        deaths += not (tmp_path / "done").exists()
        moments.add(ended(tmp_path, names))
    live_and_die(tmp_path, names, rng, None)
    log = (tmp_path / "log").read_text(errors="replace")[-3000:]
    assert (tmp_path / "done").exists(), log
    assert deaths == kills, f"only {deaths} deaths before it was done"
    assert len(moments) > kills / 3, f"it died again and again at the same place: {sorted(moments)}"
    assert workers_killed > 0 or not long
    for name, whole in wholes.items():
        own, found = STATEMENTS[name], multiset(spark.read.parquet(str(tmp_path / name / "out")))
        assert found <= whole, f"{name}: {list((found - whole).items())[:5]} too many"
        assert sum(found.values()) > 10 * files, name
        assert (found == whole) == (name in EXACT), name
        if own.alike:
            assert found == multiset(spark.sql(own.text(own.hint))), name
    print(f"{deaths} deaths at {sorted(moments)}, {workers_killed} workers killed")
