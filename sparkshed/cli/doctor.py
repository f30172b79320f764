"""`sparkshed doctor`: check that everything needed is there, and say how to fix what is not."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sparkshed.cli.checks import Check, check_all
from sparkshed.cli.errors import CliError
from sparkshed.cli.session import local_session
from sparkshed.cli.spark_checks import check_state_store, check_workers

EXAMPLES = """examples:
  sparkshed doctor
  sparkshed doctor --quick --json               # without starting Spark, for programs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON, one list of checks")
    parser.add_argument("--quick", action="store_true", help="do not start Spark")


def run(args: argparse.Namespace) -> int:
    """Run the checks; 1 if one of them failed."""
    env = dict(os.environ)
    checks = check_all(env, sys.version_info, sys.executable)
    if not args.quick:
        checks += running_checks(checks, env)
    print(json.dumps([asdict(c) for c in checks], indent=2) if args.json else render(checks))
    return exit_code(checks)


def running_checks(found: Sequence[Check], env: Mapping[str, str]) -> list[Check]:
    """Checks on a running Spark, unless an earlier one shows that it cannot start."""
    broken = [c.name for c in found if c.status == "FAIL" and c.name in ("java", "pyspark")]
    if broken:
        return [Check("spark", "FAIL", f"not started, because of {' and '.join(broken)}", "fix that first")]
    python = env.get("PYSPARK_PYTHON") or sys.executable
    try:
        with local_session("local[2]", worker_python=python, quiet=True) as spark:
            return [
                Check("spark", "ok", f"{spark.version} started"),
                check_workers(spark, sys.executable),
                check_state_store(spark),
            ]
    except CliError as error:
        return [Check("spark", "FAIL", str(error), "read the lines that Spark printed above")]


def render(checks: Sequence[Check]) -> str:
    """One line per check, and one more for each problem.

    >>> print(render([Check("java", "ok", "17"), Check("pandas", "FAIL", "3.0", "pip install 'pandas<3'")]))
    ok    java    17
    FAIL  pandas  3.0
          fix: pip install 'pandas<3'
    """
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<4}  {check.name:<{width}}  {check.found}")
        if check.fix:
            lines.append(f"      fix: {check.fix}")
    return "\n".join(lines)


def exit_code(checks: Sequence[Check]) -> int:
    """1 if a check failed; a warning does not count."""
    return int(any(check.status == "FAIL" for check in checks))
