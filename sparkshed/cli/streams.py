"""Folders as streams, for `sparkshed sql`."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.cli import inputs
from sparkshed.cli.errors import CliError
from sparkshed.view.figures import late_words, percent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

#: Seconds between two looks at whether a query still runs.
_GLANCE = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for streams."""
    parser.add_argument(
        "--stream",
        action="append",
        default=[],
        type=inputs.table_argument,
        metavar="NAME=FOLDER",
        help="read the files of a folder, and those that come, as a stream; may be repeated",
    )
    parser.add_argument(
        "--watermark",
        metavar="'COLUMN DELAY'",
        help="of all streams; each must have the column: 'ts 10 seconds'",
    )


def check(args: argparse.Namespace, **others: object) -> None:
    """Refuse what would fail or have no effect, before Spark starts.

    Args:
        args: The arguments.
        others: Values of further options that are for streams.
    """
    for name, path in args.stream:
        inputs.format_of(path)
        if not path.is_dir():
            msg = f"--stream {name}={path}: a stream is a folder, to which files come; --table takes a file"
            raise CliError(msg)
    without = [name for name, value in {"watermark": args.watermark, **others}.items() if value]
    if without and not args.stream:
        msg = f"--{without[0]} is for streams; name them with --stream NAME=FOLDER"
        raise CliError(msg)


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
            if dict(table.dtypes)[column] == "timestamp_ntz":
                # As pandas writes times without a zone; Spark takes watermarks of instants only.
                stream = stream.withColumn(column, stream[column].cast("timestamp"))
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
        if args.follow:
            print(f"watch it with: sparkshed monitor {checkpoint}; Ctrl-C ends it", file=sys.stderr)
        if not _until_interrupted(query):
            # Whatever went wrong is raised here.
            query.awaitTermination()
        query.stop()
        print(_summary(query), file=sys.stderr)
    if args.out is not None:
        print(f"written to {args.out}", file=sys.stderr)
    return 0


def _until_interrupted(query: StreamingQuery) -> bool:
    """Wait for the end of a query, or for Ctrl-C; whether that came.

    An exception in the midst of a call to the JVM would leave its connection in disorder.
    """
    interrupted = threading.Event()
    former = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        while query.isActive and not interrupted.wait(_GLANCE):
            pass
    finally:
        signal.signal(signal.SIGINT, former)
    return interrupted.is_set()


def _summary(query: StreamingQuery) -> str:
    """What the joins of a query found."""
    if not sparkshed.progress(query):
        return "no new rows"
    lines = []
    joins = list(sparkshed.history(query).groupby("join"))
    for number, (_, frame) in enumerate(joins, 1):
        # Joins have figures of streams of their own.
        batches = frame.dropna(axis="columns", how="all").to_dict("records")
        share = percent(float(batches[-1]["total_completeness"]))
        names = [name.removesuffix(".late") for name in batches[-1] if name.endswith(".late")]
        results = sum(int(own["results"]) for own in batches)
        which = f"join {number}: " if len(joins) > 1 else ""
        lines.append(f"{which}{results} results, {share} of the true answer{late_words(batches, names)}")
    return "\n".join(lines)


def _show(rows: DataFrame, number: int, limit: int) -> None:
    """Some rows of a micro-batch, if it has any; all of them are computed, and once."""
    kept = rows.persist()
    try:
        count = kept.count()
        if count:
            print(f"micro-batch {number}")
            kept.show(limit, truncate=False)
        if count > limit:
            print(f"{limit} of {count} rows; --out PATH writes all of them, and --limit N shows more")
    finally:
        kept.unpersist()


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
