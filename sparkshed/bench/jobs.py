"""Runs of an engine in a process of its own, which can be stopped when it takes too long."""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparkshed.bench.cases import Case
from sparkshed.bench.timing import Run

#: Keeps numeric libraries on one thread; they read it when they are loaded.
ONE_THREAD = {
    name: "1" for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}

#: How long a process may take to get ready, in seconds.
_START_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Job:
    """One workload for one engine; the tables and the plan lie in `folder`."""

    engine: str
    case: Case
    folder: Path
    repeats: int

    @property
    def plan(self) -> Path:
        """Where the plan is kept."""
        return self.folder / "plan.pickle"

    def tables(self) -> list[pa.Table]:
        """Read the streams."""
        paths = (self.folder / f"{number}.arrow" for number in range(self.case.m))
        return [pa.ipc.open_file(path.read_bytes()).read_all() for path in paths]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a module and its arguments; what it returns must fit in JSON."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def write_tables(tables: Iterable[pa.Table], folder: Path, batch: int | None = None) -> None:
    """Write the streams for jobs in `folder`, in batches of `batch` rows."""
    for number, table in enumerate(tables):
        with pa.OSFile(str(folder / f"{number}.arrow"), "wb") as file:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table, batch)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The runs of one job; `note` says why there are none."""

    runs: list[Run]
    note: str | None = None


class Stopped(Exception):
    """The process took too long or ended by itself; the message says which."""


class Worker:
    """A process that runs jobs, see :mod:`sparkshed.bench.worker`."""

    def __init__(self, master: str | None = None) -> None:
        """Start it, with a Spark session on `master` or on one thread, and wait until it is ready."""
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sparkshed.bench.worker", *([master] if master else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **({} if master else ONE_THREAD)},
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._next(_START_SECONDS)

    def run(self, job: Path, limit: float) -> Outcome:
        """Run a pickled job; a run that takes longer than `limit` seconds ends the process."""
        assert self._process.stdin is not None
        print(job, file=self._process.stdin, flush=True)
        runs = []
        while True:
            try:
                reply = self._next(limit)
            except Stopped as stopped:
                # One run that took its time is a result, even if the next one did not end.
                return Outcome(runs, None if runs else str(stopped))
            if "seconds" not in reply:
                return Outcome(runs, reply.get("note"))
            runs.append(Run(reply["seconds"], reply["results"]))

    def value(self, task: Path, limit: float) -> Any:
        """What a pickled call returns."""
        assert self._process.stdin is not None
        print(task, file=self._process.stdin, flush=True)
        return self._next(limit)["value"]

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process and everything that it started."""
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _next(self, limit: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            self.close()
            msg = f"stopped: took longer than {limit:g} s"
            raise Stopped(msg) from None
        if line:
            reply: dict[str, Any] = json.loads(line)
            return reply
        if self._process.wait() == -signal.SIGKILL:
            msg = "stopped by the system: out of memory"
            raise Stopped(msg)
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        msg = f"a benchmark process failed:\n{text[-4000:]}"
        raise RuntimeError(msg)


def call_alone(function: Callable[..., Any], *arguments: Any, limit: float = 600) -> Any:
    """What the function returns in a process of its own, on one thread.

    Raises:
        Stopped: If it takes longer than `limit` seconds.
    """
    worker = Worker()
    try:
        with tempfile.TemporaryDirectory(prefix="sparkshed-bench-") as folder:
            path = Path(folder) / "call.pickle"
            path.write_bytes(pickle.dumps(Call(function, arguments)))
            return worker.value(path, limit)
    finally:
        worker.close()
