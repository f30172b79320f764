"""Windows of rows on streams."""

from __future__ import annotations

from collections import Counter, deque
from random import Random

import pytest

from sparkshed.engine import host as memory
from streaming.feeds import as_streams, rows_of, run, write

ROWS = 25
TEXT = "SELECT /*+ SHED(dual, 'rows={rows}', 'seed=1'{more}) */ a.id i, b.id j FROM a JOIN b ON a.k = b.k"
SIZES = [40, 40, 40]


def naive(tables):
    """The join over the last rows of each stream: by micro-batch, time and stream."""
    bounds = [0, 40, 80, 120, 160]
    rows = [
        (sum(place >= bound for bound in bounds[1:]), time, stream, key, number)
        for stream, table in enumerate(tables)
        for place, (time, key, number) in enumerate(
            zip(*(table.column(c).to_pylist() for c in ("ts", "k", "id")), strict=True)
        )
    ]
    windows, found = (deque(maxlen=ROWS), deque(maxlen=ROWS)), Counter()
    for _, _, stream, key, number in sorted(rows, key=lambda row: row[:3]):
        for other_key, other in windows[1 - stream]:
            if key is not None and key == other_key:
                found[(number, other) if stream == 0 else (other, number)] += 1
        windows[stream].append((key, number))
    return found


@pytest.mark.parametrize("more", ["", ", 'budget=0.4'"])
def test_a_stream_is_joined_over_its_last_rows(enabled, tmp_path, more):
    rng = Random(7)
    tables = [rows_of(rng, number, 160, 24) for number in range(2)]
    for name, table in zip("ab", tables, strict=True):
        write(tmp_path / name, table, SIZES)
    # Rows of a batch are never late for the watermark of the one before.
    as_streams(enabled, tmp_path, ["a", "b"], delay="60 seconds")
    memory._cache.clear()
    frame = enabled.sql(TEXT.format(rows=ROWS, more=more))
    found = Counter((row.i, row.j) for row in run(frame, tmp_path).collect())
    full = naive(tables)
    assert found <= full and found
    if not more:
        assert found == full
