"""Golden files: hinted SQL gives Spark's rows, errors say what they said, plans look as they did."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from golden.records import Record, read, write
from golden.views import make_views

import sparkshed
from sparkshed.engine.errors import EvaluationError
from sparkshed.sql.errors import ShedError
from sparkshed.sql.outline import outline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = sorted((Path(__file__).parent / "golden").glob("*.slt"))
CASES = [(path, record) for path in FILES for record in read(path)[1]]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """The shared session with the views that the files query."""
    make_views(spark)
    return spark


@pytest.fixture(scope="module")
def outcomes(regen: bool) -> Iterator[dict[Path, dict[str, str]]]:
    """What came out, by file and record; written back at the end with `--regen`."""
    found: dict[Path, dict[str, str]] = {path: {} for path in FILES}
    yield found
    if regen:
        for path, results in found.items():
            write(path, results)


@pytest.mark.parametrize(
    ("path", "record"), CASES, ids=[f"{path.stem}-{record.name.replace(' ', '_')}" for path, record in CASES]
)
def test_golden(
    path: Path, record: Record, session: SparkSession, outcomes: dict[Path, dict[str, str]], regen: bool
) -> None:
    with _settings(session, record):
        outcome = {"equal": _equal, "error": _error, "plan": _plan}[record.kind](session, record)
    if regen:
        outcomes[path][record.name] = outcome
    else:
        assert outcome == record.expected


def test_names_are_unique() -> None:
    for path in FILES:
        names = Counter(record.name for record in read(path)[1])
        assert [name for name, count in names.items() if count > 1] == [], path.name


def test_most_results_have_rows() -> None:
    counts = [record.expected for _, record in CASES if record.kind == "equal"]
    assert sum(count != "0 rows" for count in counts) > 0.9 * len(counts)


@contextmanager
def _settings(session: SparkSession, record: Record) -> Iterator[None]:
    before = {key: session.conf.get(key) for key, _ in record.settings}
    for key, value in record.settings:
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            session.conf.set(key, str(old))


def _equal(session: SparkSession, record: Record) -> str:
    assert any(outline(text) is not None for text in record.statements), "no hint was found"
    # Spark ignores the hint, so the same text without sparkshed is the reference.
    expected = _collected(record, session.sql)
    actual = _collected(record, lambda text: sparkshed.query(session, text))
    assert actual[0] == expected[0]
    missing, surplus = expected[1] - actual[1], actual[1] - expected[1]
    assert (missing, surplus) == (Counter(), Counter())
    return f"{expected[1].total()} rows"


def _collected(record: Record, run: Callable[[str], DataFrame]) -> tuple[list[tuple[str, str]], Counter[str]]:
    """Columns and rows of the record's last statement."""
    *before, last = record.statements
    for text in before:
        run(text)
    frame = run(last)
    columns = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    return columns, Counter(repr([_plain(value) for value in row]) for row in frame.collect())


def _plain(value: Any) -> object:
    """The value such that equal ones have equal representations."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def _error(session: SparkSession, record: Record) -> str:
    from pyspark.errors import PySparkException

    with pytest.raises((ShedError, EvaluationError, PySparkException)) as caught:
        for text in record.statements:
            sparkshed.query(session, text).collect()
    error = caught.value
    if isinstance(error, PySparkException):
        on_worker = re.search(r"^sparkshed\.engine\.\w+\.(\w+: .*)$", str(error), re.MULTILINE)
        return on_worker[1] if on_worker else f"Spark: {error.getCondition()}"
    return f"{type(error).__name__}: {error}"


def _plan(session: SparkSession, record: Record) -> str:
    text = sparkshed.explain(session, record.sql, mode=record.action.split()[1])
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
