"""Queries that are stopped and started again: nothing is lost, doubled, or decided otherwise."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.feeds import (
    START,
    as_streams,
    committed,
    write,
)

FILES = 6
KEYS = "a.id i, b.id j FROM a JOIN b ON a.k = b.k"


def started(frame, folder: Path, **trigger):
    """A query with real files behind it."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**trigger).start(str(folder / "out"))


def stop_within(query, folder: Path, batches: int) -> None:
    """Stop a query when it has ended so many micro-batches, and is at work on the next one."""
    deadline = time.monotonic() + 300
    while committed(folder / "checkpoint") < batches and query.isActive and time.monotonic() < deadline:
        time.sleep(0.02)
    query.stop()


#: Rows of a window, and of one stream in a file; values of their keys.
ROWS, COUNT, VALUES = 80, 100, 4


def in_turns(rng: np.random.Generator, stream: int) -> pa.Table:
    """Rows of two streams that come in turns, numbered from 0: row 0 of `a`, of `b`, row 1 of `a`, of `b`."""
    ids = np.arange(FILES * COUNT)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "ts": pa.array(START + 2 * ids + stream).cast(pa.timestamp("us", "UTC")),
        "k": pa.array(rng.integers(0, VALUES, len(ids)), pa.int32()),
    }
    return pa.table(columns)


def test_rows_that_wait_when_a_query_is_stopped_are_joined_by_the_next_one(enabled, tmp_path):
    """The first run sheds, so that rows wait; the next one has time for everything."""
    spark, rng = enabled, np.random.default_rng(5)
    tables = [in_turns(rng, stream) for stream in (0, 1)]
    for name, table in zip("ab", tables, strict=True):
        write(tmp_path / name, table, [COUNT] * (FILES - 1))
    as_streams(spark, tmp_path, ["a", "b"], delay="60 seconds")
    options = f"'rows={ROWS}', 'adapt=1 ms', 'seed=1'"
    shedding = spark.sql(f"SELECT /*+ SHED(dual, {options}, 'budget=0.3') */ {KEYS}")
    first = started(shedding, tmp_path, processingTime="0 seconds")
    stop_within(first, tmp_path, 2)
    done = committed(tmp_path / "checkpoint")
    assert 2 <= done < FILES - 1
    full = spark.sql(f"SELECT /*+ SHED(dual, {options}) */ {KEYS}")
    started(full, tmp_path, availableNow=True).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).toPandas()
    i, j = found["i"].to_numpy(), found["j"].to_numpy()
    assert not found.duplicated().any()
    ids = np.arange(FILES * COUNT)
    near = (ids[None, :] - ids[:, None] < ROWS) & (ids[:, None] - ids[None, :] <= ROWS)
    keys = [table.column("k").to_numpy() for table in tables]
    true = near & (keys[0][:, None] == keys[1][None, :])
    wrong = ~true[i, j]
    assert not wrong.any(), f"after {done} micro-batches: {sorted(zip(i[wrong], j[wrong], strict=True))[:20]}"
    # A micro-batch that was begun is done again as it was decided; what came later is complete.
    start = (done + 1) * COUNT
    assert (np.minimum(i, j) >= start).sum() == true[start:, start:].sum() > 0
    assert len(found) < true.sum()
