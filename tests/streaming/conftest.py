"""Sessions for streaming joins."""

from __future__ import annotations

import pytest

import sparkshed


@pytest.fixture
def enabled(spark):
    """The session with hints enabled; queries that a test leaves behind are stopped."""
    sparkshed.enable(spark)
    yield spark
    for query in spark.streams.active:
        query.stop()
    sparkshed.disable(spark)
