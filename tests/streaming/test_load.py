"""Dual windows with more input than there is time for: a part of the answer, and it is known which."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkshed
from streaming.feeds import START, as_streams

#: Rows of a window; rows of a stream in one file, seconds between two files, and files.
ROWS, COUNT, EVERY, FILES = 600, 4000, 0.4, 10
HINT = f"/*+ SHED(dual, 'rows={ROWS}', 'adapt=500 ms', 'seed=1') */"
TEXT = f"SELECT {HINT} a.id i, b.id j FROM a JOIN b ON a.k = b.k"


def put(folder: Path, stream: int, number: int, rng: np.random.Generator) -> None:
    """A file of rows that come in turns with those of the other stream, there all at once."""
    ids = number * COUNT + np.arange(COUNT)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "ts": pa.array(START + 2 * ids + stream).cast(pa.timestamp("us", "UTC")),
        # One value in ten is rare. All others meet nine tenths of a window.
        "k": pa.array(np.where(rng.random(COUNT) < 0.1, rng.integers(1, 1000, COUNT), 0), pa.int32()),
    }
    path = folder / f"{number:05}.parquet"
    pq.write_table(pa.table(columns), path.with_suffix(".draft"))
    os.replace(path.with_suffix(".draft"), path)


@pytest.mark.long
def test_more_than_there_is_time_for_is_shed(enabled, tmp_path):
    """The full join has ten million results per second; each takes 130 ns or more on its way out."""
    spark, rng = enabled, np.random.default_rng(3)
    for stream, name in enumerate("ab"):
        (tmp_path / name).mkdir()
        put(tmp_path / name, stream, 0, rng)
    as_streams(spark, tmp_path, ["a", "b"], delay="600 seconds")

    def feed() -> None:
        for number in range(1, FILES):
            time.sleep(EVERY)
            for stream, name in enumerate("ab"):
                put(tmp_path / name, stream, number, rng)

    writer = spark.sql(TEXT).writeStream.format("parquet").trigger(processingTime=f"{EVERY} seconds")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "out"))
    feeder = threading.Thread(target=feed)
    feeder.start()
    feeder.join()
    query.processAllAvailable()
    query.stop()
    history = sparkshed.history(query)
    print(history[["seconds", "lasted", "z", "results", "completeness", "a.shed", "b.shed", "work"]])
    assert history["a.arrived"].sum() == history["b.arrived"].sum() == FILES * COUNT
    # A new decision makes a micro-batch, too.
    history = history[history["a.arrived"] + history["b.arrived"] > 0]
    assert history["z"].min() < 1, "there should not be time for everything"
    # What work costs is measured, and nothing else is known of it.
    assert history["variable_seconds"].iloc[-1] > 0
    assert history["a.shed"].sum() > 0 and history["b.shed"].sum() > 0, "rows are dropped in front"

    keys = [spark.read.parquet(str(tmp_path / name)).select("id", "k") for name in "ab"]
    # Some ten millions of rows, which would not all fit into the JVM.
    found = pq.read_table(tmp_path / "out")
    i, j = found["i"].to_numpy(), found["j"].to_numpy()
    assert len(found) == history["results"].sum() > 1000
    assert len(np.unique(i * FILES * COUNT + j)) == len(found), "no result twice"
    k = [own.toPandas().sort_values("id")["k"].to_numpy() for own in keys]
    assert (k[0][i] == k[1][j]).all()
    # Files of both streams may come with different micro-batches, and their rows that much earlier.
    assert np.abs(i - j).max() <= ROWS + COUNT
    # Row n of `a` comes before row n of `b`, and each meets the last rows of the other stream.
    full = sum(
        int(
            (
                k[0][max(0, -late) : len(k[0]) - max(0, late)]
                == k[1][max(0, late) : len(k[1]) + min(0, late)]
            ).sum()
        )
        for late in range(-ROWS, ROWS)
    )
    last, share = history.iloc[-1], len(found) / full
    assert share < 1
    assert 0 < last["total_completeness_low"] <= last["total_completeness_high"] < 1
    # Rows that still wait are neither found nor missed yet: a window of those that were let in, at most.
    kept = 1 - (history["a.shed"] / history["a.arrived"]).max()
    waiting = ROWS / kept / (FILES * COUNT)
    assert waiting < 0.2
    assert last["total_completeness_low"] * (1 - waiting) <= share <= last["total_completeness_high"]
