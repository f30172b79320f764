"""Every example runs, and finds what it should."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str):
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_cameras(spark):
    hinted, plain = run("cameras.py")
    assert hinted == plain > 100


def test_temp_view(spark):
    rows = run("temp_view.py")
    assert len(rows) == 20
    assert sum(row.orders for row in rows) == 480


def test_every_example_is_tested():
    tested = Path(__file__).read_text()
    assert all(f'"{example.name}"' in tested for example in EXAMPLES.glob("*.py"))
