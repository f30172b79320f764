"""Every example runs, and finds what it should."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def as_before(spark):
    """Examples leave the session as it was, but for views."""
    settings = spark.conf.getAll
    yield
    assert spark.conf.getAll == settings
    assert not spark.streams.active
    # The hint means nothing to Spark itself.
    assert "Shed" not in spark.sql("EXPLAIN SELECT /*+ SHED(exact) */ 1").head().plan
    for view in spark.sql("SHOW VIEWS").collect():
        spark.catalog.dropTempView(view.viewName)


def run(name: str):
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_cameras(spark):
    hinted, plain = run("cameras.py")
    assert hinted == plain > 100


def test_temp_view(spark):
    rows = run("temp_view.py")
    assert len(rows) == 20
    assert sum(row.orders for row in rows) == 480


def test_tracking(spark):
    found, exact, share = run("tracking.py")
    assert found < exact
    # The index leaves little work but that of the results themselves, so half of it finds about half of them.
    assert 0.35 < len(found) / len(exact) < 0.9
    assert abs(share - len(found) / len(exact)) < 0.15


def test_news(spark):
    hinted, plain = run("news.py")
    assert hinted == plain
    assert len(hinted) > 10


def test_calls_and_trades(spark):
    hinted, plain = run("calls_and_trades.py")
    assert hinted == plain
    assert len(hinted) > 100


def test_attacks(spark):
    hinted, plain = run("attacks.py")
    assert hinted == plain
    assert len(hinted) > 10


def test_claims(spark):
    found, exact = run("claims.py")
    assert found < exact
    assert 0.5 < len(found) / len(exact) < 1


def test_shots(spark):
    hinted, plain = run("shots.py")
    assert hinted == plain
    assert len(hinted) > 10


def test_ticks(spark):
    exact, limited = run("ticks.py")
    assert all(found < exact for found in limited.values())
    shares = {strategy: len(found) / len(exact) for strategy, found in limited.items()}
    assert shares["gdj"] > 0.5
    assert shares["gdj"] > max(shares["fifo"], shares["rand"])


def test_for_each_batch(spark):
    found, expected = run("for_each_batch.py")
    assert found == expected
    assert len(found) > 10


def test_broker(spark):
    found, expected = run("broker.py")
    assert found == expected
    assert len(found) > 100


def test_cluster(spark):
    answers, expected = run("cluster.py")
    assert answers["atr:4"] == answers["ctr:4"] == answers["none"]
    assert len(answers["none"]) > 100
    assert expected.startswith("Diffusion: none=")


def test_every_example_is_listed():
    page = (EXAMPLES / "README.md").read_text()
    assert all(f"]({example.name})" in page for example in EXAMPLES.glob("*.py"))


def test_every_example_is_tested():
    tested = Path(__file__).read_text()
    assert all(f'"{example.name}"' in tested for example in EXAMPLES.glob("*.py"))
