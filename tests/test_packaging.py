from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: Folder at the root -> package that it holds.
FOLDERS = {"sparkshed": "sparkshed", "sql": "sparkshed.sql", "planner": "sparkshed.planner"}


def packages_in_the_tree() -> set[str]:
    """Every folder that holds Python files, by the name of its package."""
    found = set()
    for folder, package in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *parts)))
    return found


def run(
    *command: str | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    words = [str(c) for c in command]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_every_package_is_listed():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_in_the_tree()


def test_every_package_has_an_init():
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), f"{file.parent} has no __init__.py"


@pytest.mark.parametrize("name", ["sql", "planner"])
def test_nothing_is_importable_by_the_name_of_its_folder(name, tmp_path):
    done = run(sys.executable, "-c", f"import {name}", cwd=tmp_path)
    assert done.returncode == 1
    assert f"No module named '{name}'" in done.stderr


@pytest.mark.parametrize(
    ("package", "unwanted"),
    [("sparkshed", "pyspark"), ("sparkshed.sql", "pyspark"), ("sparkshed.planner", "pyspark")],
)
def test_light_imports(package, unwanted, tmp_path):
    code = f"""
import importlib, pkgutil, sys
package = importlib.import_module({package!r})
if {package!r} != "sparkshed":
    for info in pkgutil.walk_packages(package.__path__, {package!r} + "."):
        importlib.import_module(info.name)
print({unwanted!r} in sys.modules)
"""
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"


def test_front_end_knows_neither_planner_nor_numpy(tmp_path):
    code = """
import importlib, pkgutil, sys
import sparkshed.sql
for info in pkgutil.walk_packages(sparkshed.sql.__path__, "sparkshed.sql."):
    importlib.import_module(info.name)
print([m for m in sys.modules if m.startswith("sparkshed.") and not m.startswith("sparkshed.sql")])
"""
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel built from a copy of the tree, so that nothing is left behind in it."""
    copy = tmp_path_factory.mktemp("tree") / "project"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    out = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, copy, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("*.whl")
    return path


def test_wheel_holds_one_top_level_package(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"sparkshed"}
    assert "sparkshed/py.typed" in names
    assert "sparkshed/cli/log4j2.properties" in names
    for package in packages_in_the_tree():
        assert f"{package.replace('.', '/')}/__init__.py" in names


def test_wheel_works_in_a_new_environment(wheel, tmp_path):
    folder = tmp_path / "env"
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    done = run(python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # What the package depends on comes from here. Only the folder is added: its own .pth files, and
    # with them this tree, stay out.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    shown = run(folder / "bin" / "sparkshed", "--version", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip() == f"sparkshed {PROJECT['project']['version']}"

    code = "import sparkshed.sql.expr as e, sparkshed.planner as p; print(e.__file__, p.__file__)"
    imported = run(python, "-c", code, cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    assert all(path.startswith(str(folder)) for path in imported.stdout.split()), imported.stdout

    # The quickstart, as it is pasted from the page.
    quickstart = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[0]
    (tmp_path / "quickstart.py").write_text(quickstart)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    pasted = run(python, tmp_path / "quickstart.py", cwd=tmp_path, env=env)
    assert pasted.returncode == 0, pasted.stderr
    assert re.search(r"^\| *\d+\| +\d+\|$", pasted.stdout, re.M), pasted.stdout
    assert "== Shed Plan ==\nShedJoinExec: strategy=exact" in pasted.stdout

    pq.write_table(pa.table({"k": [1, 2, 2], "t": [0, 1, 5]}), tmp_path / "rows.parquet")
    query = (
        "SELECT /*+ SHED(exact) */ l.k AS k, count(*) AS pairs FROM "
        "(SELECT k, timestamp_seconds(t) AS ts FROM rows) l JOIN "
        "(SELECT k, timestamp_seconds(t) AS ts FROM rows) r ON l.k = r.k "
        "AND l.ts BETWEEN r.ts - INTERVAL 2 SECONDS AND r.ts GROUP BY l.k ORDER BY k"
    )
    table = f"rows={tmp_path / 'rows.parquet'}"
    answer = run(folder / "bin" / "sparkshed", "sql", "-e", query, "--table", table, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    rows = [line.split("|")[1:3] for line in answer.stdout.splitlines() if line.startswith(("|1", "|2"))]
    assert [[cell.strip() for cell in row] for row in rows] == [["1", "1"], ["2", "2"]]
