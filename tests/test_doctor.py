from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys

import pytest

from sparkshed.cli import doctor, spark_checks
from sparkshed.cli.checks import (
    REQUIREMENTS,
    Check,
    check_java,
    check_package,
    check_python,
    check_worker_python,
    installed_version,
    version_key,
)
from sparkshed.cli.spark_checks import attempt, check_state_store, check_workers, last_line

BY_NAME = {requirement.package: requirement for requirement in REQUIREMENTS}
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_8 = 'java version "1.8.0_392"'


def test_python_too_old():
    check = check_python((3, 9, 18), "/usr/bin/python3")
    assert check.status == "FAIL"
    assert check.found == "3.9.18 (/usr/bin/python3)"
    assert "3.10" in check.fix


def test_python_new_enough():
    assert check_python((3, 10, 0), "/usr/bin/python3").status == "ok"


@pytest.mark.parametrize(
    ("package", "version", "status"),
    [
        ("pyspark", "4.1.0", "ok"),
        ("pyspark", "4.0.1", "FAIL"),
        ("pyspark", "3.5.5", "FAIL"),
        ("pyspark", "10.0.0", "ok"),
        ("pandas", "2.2.0", "ok"),
        ("pandas", "2.3.3", "ok"),
        ("pandas", "3.0.0", "FAIL"),
        ("pandas", "3.0.0rc1", "FAIL"),
        ("pandas", "2.1.4", "FAIL"),
        ("sqlglot", "31.0.0", "FAIL"),
        ("protobuf", "4.25.0", "FAIL"),
        ("pyarrow", "14.0.2", "FAIL"),
        ("numpy", None, "FAIL"),
    ],
)
def test_package_versions(package, version, status):
    check = check_package(BY_NAME[package], version)
    assert check.status == status
    assert check.name == package
    assert (version or "not installed") in check.found
    assert ("pip install" in check.fix) == (status == "FAIL")


def test_requirements_are_those_of_the_package():
    """The doctor asks for what the package itself declares."""
    declared = {}
    for line in installed_requirements():
        name, _, rest = line.partition(">")
        declared[name.strip().lower()] = ">" + rest
    for requirement in REQUIREMENTS:
        text = declared[requirement.package]
        assert f">={requirement.least}" in text
        assert (f"<{requirement.below}" in text) == (requirement.below is not None)


def installed_requirements() -> list[str]:
    """Name, versions and nothing else, with `<3,>=2.2` turned to `>=2.2,<3`."""
    from importlib.metadata import requires

    lines = []
    for line in requires("sparkshed") or []:
        name = line.split(";")[0].strip()
        parts = name.replace("<", " <").replace(">", " >").replace(",", " ").split()
        lines.append(parts[0] + ",".join(sorted(parts[1:], reverse=True)))
    return lines


def test_installed_version():
    assert installed_version("pytest") == pytest.__version__
    assert installed_version("no-such-package-anywhere") is None


def test_version_key_ignores_trailing_zeros_and_suffixes():
    assert version_key("4.1") == version_key("4.1.0") == version_key("4.1.0.dev2")
    assert version_key("4.10") > version_key("4.9")


def test_java_missing():
    check = check_java({}, which=lambda name: None, output=lambda java: None)
    assert check.status == "FAIL"
    assert "not found" in check.found
    assert "openjdk-17-jre-headless" in check.fix


def test_java_too_old():
    check = check_java({}, which=lambda name: "/usr/bin/java", output=lambda java: JAVA_8)
    assert check.status == "FAIL"
    assert check.found.startswith("8 (/usr/bin/java")


def test_java_home_wins_over_the_path():
    outputs = {"/opt/jdk/bin/java": JAVA_17, "/usr/bin/java": JAVA_8}
    check = check_java({"JAVA_HOME": "/opt/jdk"}, which=lambda name: "/usr/bin/java", output=outputs.get)
    assert check == Check("java", "ok", "17 (JAVA_HOME=/opt/jdk)")


def test_broken_java_home_is_not_hidden_by_a_good_path():
    outputs = {"/usr/bin/java": JAVA_17}
    check = check_java({"JAVA_HOME": "/gone"}, which=lambda name: "/usr/bin/java", output=outputs.get)
    assert check.status == "FAIL"
    assert "/gone/bin/java does not run" in check.found


def test_worker_python_same(tmp_path):
    python = tmp_path / "python"
    python.touch()
    check = check_worker_python({"PYSPARK_PYTHON": str(python)}, str(python), which=lambda name: name)
    assert check.status == "ok"


def test_worker_python_other(tmp_path):
    python = str(tmp_path / "python")
    check = check_worker_python({}, python, lambda name: "/usr/bin/python3", lambda name: None)
    assert check.status == "warn"
    assert check.fix.startswith(f"export PYSPARK_PYTHON={python}")


def test_worker_python_that_cannot_join(tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'pyarrow'\" >&2\nexit 1\n")
    python.chmod(0o755)
    check = check_worker_python({}, sys.executable, lambda name: str(python))
    assert check.status == "FAIL"
    assert "No module named 'pyarrow'" in check.found
    assert "before Spark starts" in check.fix


def test_worker_python_missing(tmp_path):
    check = check_worker_python({"PYSPARK_PYTHON": "gone"}, str(tmp_path / "python"), which=lambda name: None)
    assert check.status == "FAIL"


def test_virtual_environment_is_not_the_python_it_was_made_from(tmp_path):
    base, env = tmp_path / "base", tmp_path / "env"
    base.mkdir()
    env.mkdir()
    (base / "python3").touch()
    (env / "python3").symlink_to(base / "python3")
    other = str(base / "python3")
    check = check_worker_python({}, str(env / "python3"), lambda name: other, lambda name: None)
    assert check.status == "warn"


def test_a_problem_needs_a_fix():
    with pytest.raises(ValueError, match="a problem needs a fix"):
        Check("java", "FAIL", "none")


def test_spark_is_not_started_without_java():
    checks = doctor.running_checks([Check("java", "FAIL", "none", "install it")], {})
    assert [(c.name, c.status) for c in checks] == [("spark", "FAIL")]
    assert "because of java" in checks[0].found


def test_exit_code_counts_failures_only():
    assert doctor.exit_code([Check("a", "ok", "1"), Check("b", "warn", "2", "do")]) == 0
    assert doctor.exit_code([Check("a", "ok", "1"), Check("b", "FAIL", "2", "do")]) == 1


def test_quick_json(capsys):
    code = doctor.run(argparse.Namespace(json=True, quick=True))
    checks = json.loads(capsys.readouterr().out)
    assert code == int(any(c["status"] == "FAIL" for c in checks))
    assert {"python", "java", "pyspark", "pandas", "PYSPARK_PYTHON"} <= {c["name"] for c in checks}
    assert all(set(c) == {"name", "status", "found", "fix"} for c in checks)
    assert "spark" not in {c["name"] for c in checks}


def test_runs_where_packages_are_missing():
    """The command that finds missing packages must not need them."""
    missing = [r.package for r in REQUIREMENTS if r.package != "protobuf"]
    code = f"""
import sys
sys.modules.update(dict.fromkeys({missing!r}))
from sparkshed.cli.main import main
sys.exit(main(["doctor", "--quick"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode in (0, 1)
    for requirement in REQUIREMENTS:
        assert f"  {requirement.package} " in done.stdout


def test_an_error_is_a_finding():
    def job() -> str:
        msg = f"first\nTraceback\n{cause}\n"
        raise RuntimeError(msg)

    cause = "ModuleNotFoundError: No module named 'pyarrow'"
    check = attempt("python workers", job, "export X=1")
    assert check == Check("python workers", "FAIL", cause, "export X=1")


def test_last_line_without_a_message():
    assert last_line(KeyError()) == "KeyError"


def test_workers_run(spark):
    assert check_workers(spark, "python").status == "ok"


def test_workers_with_another_version_are_found(spark, monkeypatch):
    monkeypatch.setattr(spark_checks, "version", lambda _: "9.9")
    check = check_workers(spark, "python")
    assert check.status == "FAIL"
    assert re.fullmatch(r"ValueError: workers have sparkshed \S+, this process has 9.9", check.found)
    assert "install the same sparkshed" in check.fix


def test_state_store_runs(spark):
    check = check_state_store(spark)
    assert check.status == "ok", check.found
    assert "RocksDB" in check.found
