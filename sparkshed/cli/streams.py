"""Folders as streams, for `sparkshed sql`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.cli import inputs
from sparkshed.cli.errors import CliError
from sparkshed.view.figures import percent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register_streams(spark: SparkSession, args: argparse.Namespace) -> None:
    """Make each folder readable by its name, with its watermark."""
    column, _, delay = (args.watermark or "").partition(" ")
    if args.watermark and not delay.strip():
        msg = f"--watermark {args.watermark!r} needs a column and a delay, like 'ts 10 seconds'"
        raise CliError(msg)
    for name, path in args.stream:
        table = inputs.read_table(spark, path)
        reader = spark.readStream.schema(table.schema).format(inputs.format_of(path)).option("header", True)
        stream = reader.load(str(path.resolve()))
        if column in table.columns:
            stream = stream.withWatermark(column, delay.strip())
        elif column:
            msg = f"--watermark: {name} has no column {column}; it has {', '.join(table.columns)}"
            raise CliError(msg)
        stream.createOrReplaceTempView(name)


def run_stream(spark: SparkSession, text: str, args: argparse.Namespace) -> int:
    """Run a statement over streams: print its rows or write them."""
    frame = spark.sql(text)
    if not frame.isStreaming:
        msg = "the statement reads none of the streams; name them in FROM"
        raise CliError(msg)
    with _checkpoint(args) as checkpoint:
        writer = frame.writeStream.option("checkpointLocation", str(checkpoint))
        if args.out is not None:
            writer = writer.format(inputs.output_format(args.out, folder=True)).option(
                "path", str(args.out.resolve())
            )
        else:
            writer = writer.foreachBatch(lambda rows, number: _show(rows, number, args.limit))
        trigger = {"processingTime": "1 second"} if args.follow else {"availableNow": True}
        query = writer.trigger(**trigger).start()
        print(f"watch it with: sparkshed monitor {checkpoint}", file=sys.stderr)
        with suppress(KeyboardInterrupt):
            query.awaitTermination()
        query.stop()
        found = sparkshed.history(query) if sparkshed.progress(query) else None
    if found is not None:
        share = percent(float(found["total_completeness"].iloc[-1]))
        print(f"{int(found['results'].sum())} results, {share} of the true answer", file=sys.stderr)
    return 0


def _show(rows: DataFrame, number: int, limit: int) -> None:
    """Some rows of a micro-batch, if it has any."""
    head = rows.limit(limit)
    if not head.isEmpty():
        print(f"micro-batch {number}")
        head.show(limit, truncate=False)


@contextmanager
def _checkpoint(args: argparse.Namespace) -> Iterator[Path]:
    """Where the query keeps its state; for good, if somebody named the place."""
    if args.checkpoint is not None:
        yield args.checkpoint.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="sparkshed-sql-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
