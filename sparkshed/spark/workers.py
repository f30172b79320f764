"""Whether the Python that Spark starts workers with can run the join."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache

from pyspark.sql import SparkSession

from sparkshed.sql.errors import PlanError

#: What a worker imports.
_NEEDED = "import numpy, pandas, pyarrow, sparkshed.engine"
_PATIENCE = 60.0


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose workers would fail in the middle of a job, with an error that says little.

    Raises:
        PlanError: The workers' Python cannot import what the join needs.
    """
    context = session.sparkContext
    if not context.master.startswith("local"):
        # Executors are other machines, of which nothing is known here.
        return
    jvm = context._jvm
    assert jvm is not None
    # Functions are run by the first one, sources of streams by the second.
    for name in (context.pythonExec, jvm.System.getenv("PYSPARK_PYTHON") or "python3"):
        problem = _problem_of(name)
        if problem is not None:
            msg = (
                f"Spark starts Python workers with `{name}`, and that one {problem}. Set PYSPARK_PYTHON to "
                f"{sys.executable} before the session is made: `export PYSPARK_PYTHON={sys.executable}`, or "
                '`os.environ["PYSPARK_PYTHON"] = sys.executable` in Python.'
            )
            raise PlanError(msg)


@cache
def _problem_of(name: str) -> str | None:
    """What is wrong with an interpreter; None if it will do."""
    path = shutil.which(name)
    if path is None:
        return "does not exist"
    if path == sys.executable:
        return None
    try:
        tried = subprocess.run(
            [path, "-c", _NEEDED], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not answer ({error})"
    if tried.returncode == 0:
        return None
    return f"fails: {(tried.stderr.strip() or 'no message').splitlines()[-1]}"
