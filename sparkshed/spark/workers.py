"""Whether the Python that Spark starts workers with can run the join."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sparkshed.sql.errors import PlanError

#: What a worker imports; sparkshed itself may come with `addPyFile`.
_NEEDED = "import numpy, pandas, pyarrow"
_PATIENCE = 60.0
#: Interpreters that were found to do.
_good: set[str] = set()


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose workers would fail in the middle of a job, with an error that says little.

    Raises:
        PlanError: The workers' Python cannot import what the join needs.
    """
    _check(session, session.sparkContext.pythonExec)


def check_sources(session: SparkSession) -> None:
    """The same for the process that reads decisions, which Spark starts by another name.

    Raises:
        PlanError: That process cannot import what it needs.
    """
    jvm = session.sparkContext._jvm
    assert jvm is not None
    _check(session, jvm.System.getenv("PYSPARK_PYTHON") or "python3")


def _check(session: SparkSession, name: str) -> None:
    if name in _good or not session.sparkContext.master.startswith("local"):
        # Executors that are other machines are out of sight.
        return
    problem = _problem_of(name)
    if problem is not None:
        msg = (
            f"Spark starts Python workers with `{name}`, and that one {problem}. Set PYSPARK_PYTHON to "
            f"{sys.executable} before Spark starts, in a new process: "
            f"`export PYSPARK_PYTHON={sys.executable}`, or "
            '`os.environ["PYSPARK_PYTHON"] = sys.executable` at the top of a script.'
        )
        raise PlanError(msg)
    _good.add(name)


def _problem_of(name: str) -> str | None:
    """What is wrong with an interpreter; None if it will do, or does not say in time."""
    path = shutil.which(name)
    if path is None:
        return "does not exist"
    if _is_this(Path(path)):
        return None
    try:
        tried = subprocess.run(
            [path, "-c", _NEEDED], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        return f"cannot be run ({error})"
    if tried.returncode == 0:
        return None
    return f"fails: {(tried.stderr.strip() or 'no message').splitlines()[-1]}"


def _is_this(path: Path) -> bool:
    """Whether it is the running interpreter, by whatever name; those of two environments are not the same."""
    own = Path(sys.executable)
    return path.parent == own.parent and path.resolve() == own.resolve()
