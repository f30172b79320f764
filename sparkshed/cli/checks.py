"""The checks of `sparkshed doctor`.

Everything a check looks at is passed in, so each can be tried with any environment. Checks that
need a running Spark are in :mod:`sparkshed.cli.spark_checks`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

Status = Literal["ok", "warn", "FAIL"]

LEAST_JAVA = 17
LEAST_PYTHON = (3, 10)


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found; `fix` says what to do and is empty when nothing is wrong."""

    name: str
    status: Status
    found: str
    fix: str = ""

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.fix == ""):
            msg = f"check {self.name}: a problem needs a fix, and `ok` has none"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package and the versions that work: `least` <= version < `below`."""

    package: str
    least: str
    below: str | None = None
    #: What to hand to `pip install` when the package is missing or wrong.
    spec: str = ""


REQUIREMENTS = (
    Requirement("pyspark", "4.1", spec="sparkshed[spark]"),
    Requirement("pyarrow", "15", spec="pyarrow>=15"),
    # pandas 3 changed its string type; Spark's Python workers do not expect that.
    Requirement("pandas", "2.2", "3", "pandas>=2.2,<3"),
    Requirement("protobuf", "5", spec="protobuf>=5"),
    Requirement("numpy", "1.26", spec="numpy>=1.26"),
    Requirement("sqlglot", "30", "31", "sqlglot>=30,<31"),
)


def version_key(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at the end.

    >>> version_key("4.3.0.dev1")
    (4, 3)
    >>> version_key("2.2") < version_key("2.10.1")
    True
    """
    match = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def installed_version(package: str) -> str | None:
    """Version of an installed package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def check_python(version: Sequence[int], executable: str) -> Check:
    """Whether this Python is new enough."""
    found = f"{'.'.join(map(str, version[:3]))} ({executable})"
    if tuple(version[:2]) >= LEAST_PYTHON:
        return Check("python", "ok", found)
    least = ".".join(map(str, LEAST_PYTHON))
    return Check("python", "FAIL", found, f"use Python {least} or later")


def check_package(requirement: Requirement, version: str | None) -> Check:
    """Whether a package is there in a version that works."""
    fix = f"pip install '{requirement.spec}'"
    if version is None:
        return Check(requirement.package, "FAIL", "not installed", fix)
    key = version_key(version)
    if key < version_key(requirement.least):
        return Check(requirement.package, "FAIL", f"{version}, older than {requirement.least}", fix)
    if requirement.below and key >= version_key(requirement.below):
        return Check(requirement.package, "FAIL", f"{version}, needs to be below {requirement.below}", fix)
    return Check(requirement.package, "ok", version)


def java_output(java: str) -> str | None:
    """What `java -version` prints, or None if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def java_version(output: str) -> int | None:
    """Major version in what `java -version` printed.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_392"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None


def check_java(
    env: Mapping[str, str],
    which: Callable[[str], str | None] = shutil.which,
    output: Callable[[str], str | None] = java_output,
) -> Check:
    """Whether Spark will find a Java that it can use: JAVA_HOME if set, else `java` on the PATH."""
    fix = (
        f"install Java {LEAST_JAVA} or later (Debian: apt-get install openjdk-17-jre-headless) "
        "and set JAVA_HOME to its home"
    )
    home = env.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else which("java")
    where = f"JAVA_HOME={home}" if home else f"{java}, on the PATH"
    if java is None:
        return Check("java", "FAIL", "not found: JAVA_HOME is not set and `java` is not on the PATH", fix)
    text = output(java)
    version = java_version(text) if text is not None else None
    if version is None:
        return Check("java", "FAIL", f"{java} does not run ({where})", fix)
    if version < LEAST_JAVA:
        return Check("java", "FAIL", f"{version} ({where}), older than {LEAST_JAVA}", fix)
    return Check("java", "ok", f"{version} ({where})")


def import_problem(python: str) -> str | None:
    """Why an interpreter cannot import what workers need; None if it can."""
    needed = "import numpy, pandas, pyarrow, sparkshed.engine.operator"
    try:
        done = subprocess.run([python, "-c", needed], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or "it fails").splitlines()[-1]


def check_worker_python(
    env: Mapping[str, str],
    executable: str,
    which: Callable[[str], str | None] = shutil.which,
    problem_of: Callable[[str], str | None] = import_problem,
) -> Check:
    """Whether Spark's Python workers will run an interpreter that can join, in the user's own programs.

    The commands of `sparkshed` see to it themselves.
    """
    name = "PYSPARK_PYTHON"
    setting = env.get(name)
    python = which(setting or "python3")
    found = f"{setting or 'not set, so Spark takes python3'} ({python or 'not found'})"
    if python is not None and _same_interpreter(python, executable):
        return Check(name, "ok", found)
    fix = f"export {name}={executable}, or set it in your programs before Spark starts"
    problem = "there is no such interpreter" if python is None else problem_of(python)
    if problem is not None:
        return Check(name, "FAIL", f"{found}: {problem}", fix)
    return Check(name, "warn", f"{found}, not this interpreter", fix)


def _same_interpreter(left: str, right: str) -> bool:
    # A virtual environment's python is a link to the one it was made from: compare folders, too.
    return os.path.realpath(left) == os.path.realpath(right) and (
        os.path.realpath(os.path.dirname(left)) == os.path.realpath(os.path.dirname(right))
    )


def check_all(env: Mapping[str, str], version: Sequence[int], executable: str) -> list[Check]:
    """All checks that need no running Spark."""
    return [
        check_python(version, executable),
        check_java(env),
        *(check_package(r, installed_version(r.package)) for r in REQUIREMENTS),
        check_worker_python(env, executable),
    ]
