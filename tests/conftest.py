"""What all tests share: a Spark session and the switch that rewrites golden files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkshed.cli.session import use_compiled_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: For every JVM that a test starts. Statements are many and small, so compiling them well costs more than it
#: saves, and so do threads that clear up.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

#: Halves of all tests that take about as long as each other; each has a Spark session of its own.
PARTS = ["batch", "rest"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regen", action="store_true", help="rewrite the golden files with what comes out now")
    parser.addoption("--part", choices=PARTS, help="only tests of batch queries on Spark, or the rest")
    parser.addoption("--long", action="store_true", help="all streaming statements, 25 crashes, a long run")


def pytest_configure(config: pytest.Config) -> None:
    """Settings for Spark in this process and in those below it, where the user has none."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM)
    use_compiled_pyspark()


def part_of(item: pytest.Item) -> str:
    """Streaming queries run beside the tests without Spark: batch queries take as long as both of them.

    So they do with the streaming statements that are compared with Spark's batch answers.
    """
    streams = item.path.is_relative_to(Path(__file__).with_name("streaming"))
    streams = streams and item.path.name != "test_oracle.py"
    return "batch" if "spark" in getattr(item, "fixturenames", ()) and not streams else "rest"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that are marked `long` run with --long only, and one part of all tests, if that is asked for."""
    if part := config.getoption("--part"):
        asked = [part_of(item) == part for item in items]
        config.hook.pytest_deselected(items=[i for i, own in zip(items, asked, strict=True) if not own])
        items[:] = [item for item, own in zip(items, asked, strict=True) if own]
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes long; run with --long"))


@pytest.fixture(scope="session")
def regen(pytestconfig: pytest.Config) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(pytestconfig.getoption("--regen"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small local session for all tests. Nothing is enabled on it."""
    from pyspark.sql import SparkSession

    from sparkshed.cli.session import settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch = str(tmp_path_factory.mktemp("spark"))
    builder = SparkSession.builder
    for key, value in settings("local[2]", scratch, shuffle_partitions=2).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
