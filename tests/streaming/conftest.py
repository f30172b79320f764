"""Sessions for streaming joins."""

from __future__ import annotations

import pytest

import sparkshed
from streaming.feeds import two_streams


@pytest.fixture
def enabled(spark):
    """The session with hints enabled; queries that a test leaves behind are stopped."""
    sparkshed.enable(spark)
    yield spark
    for query in spark.streams.active:
        query.stop()
    sparkshed.disable(spark)


@pytest.fixture(scope="session")
def four_files(tmp_path_factory):
    """Two streams that tests copy."""
    return two_streams(tmp_path_factory.mktemp("feeds"))
