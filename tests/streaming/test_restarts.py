"""Queries that are stopped and started again: nothing is lost, doubled, or decided otherwise."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

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


def batches_of(checkpoint: Path, source: int) -> np.ndarray:
    """The micro-batch that each row of a stream came in, from the offsets that Spark logged.

    A query can be stopped when one source has written down what its next files are, and the micro-batch has
    not been: then more of its files come in the next one than of the other source.
    """
    found, last = np.zeros(FILES * COUNT, np.int64), -1
    for number in sorted(int(own.name) for own in (checkpoint / "offsets").iterdir() if own.name.isdigit()):
        lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()
        upto = json.loads(lines[2 + source])["logOffset"]
        found[(last + 1) * COUNT : (upto + 1) * COUNT] = number
        last = upto
    assert last == FILES - 1
    return found


def in_windows(batches: list[np.ndarray]) -> np.ndarray:
    """Which rows of both streams meet: the earlier one is among the last ones when the later one comes."""
    ids = np.arange(FILES * COUNT)
    places = [(own * 4 * len(ids)) + 2 * ids + stream for stream, own in enumerate(batches)]
    before = [places[1 - stream].searchsorted(own) for stream, own in enumerate(places)]
    later = places[1][None, :] > places[0][:, None]
    return np.where(
        later, ids[:, None] >= before[1][None, :] - ROWS, ids[None, :] >= before[0][:, None] - ROWS
    )


def run_ahead(source: Path) -> None:
    """What a source has written down when a query is stopped before the micro-batch is."""
    last = max(int(own.name) for own in source.iterdir() if own.name.isdigit())
    version, line = (source / str(last)).read_text().splitlines()
    entry = json.loads(line)
    path = entry["path"].replace(f"{last:05}.parquet", f"{last + 1:05}.parquet")
    entry |= {"path": path, "timestamp": entry["timestamp"] + 1000, "batchId": last + 1}
    (source / str(last + 1)).write_text(f"{version}\n{json.dumps(entry)}")


@pytest.mark.parametrize("ahead", [False, True])
def test_rows_that_wait_when_a_query_is_stopped_are_joined_by_the_next_one(enabled, tmp_path, ahead):
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
    if ahead:
        run_ahead(tmp_path / "checkpoint" / "sources" / "0")
    full = spark.sql(f"SELECT /*+ SHED(dual, {options}) */ {KEYS}")
    started(full, tmp_path, availableNow=True).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).toPandas()
    i, j = found["i"].to_numpy(), found["j"].to_numpy()
    assert not found.duplicated().any()
    batches = [batches_of(tmp_path / "checkpoint", source) for source in (0, 1)]
    assert not ahead or (batches[0] != batches[1]).any()
    near = in_windows(batches)
    keys = [table.column("k").to_numpy() for table in tables]
    true = near & (keys[0][:, None] == keys[1][None, :])
    wrong = ~true[i, j]
    assert not wrong.any(), f"after {done} micro-batches: {sorted(zip(i[wrong], j[wrong], strict=True))[:20]}"
    # A micro-batch that was begun is done again as it was decided; what came later is complete.
    start = (done + 1) * COUNT
    assert (np.minimum(i, j) >= start).sum() == true[start:, start:].sum() > 0
    assert len(found) < true.sum()
