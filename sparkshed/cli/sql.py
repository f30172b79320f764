"""`sparkshed sql`: run one statement over files, or over folders as streams."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import sparkshed
from sparkshed.cli import inputs, streams
from sparkshed.cli.comparing import compare
from sparkshed.cli.errors import CliError
from sparkshed.cli.session import local_session

EXAMPLES = """examples:
  sparkshed sql query.sql --table cam1=cam1.parquet --table cam2=cam2.csv
  sparkshed sql -e 'SELECT /*+ SHED(exact) */ …' --table a=a/ --table b=b/ --out result.parquet
  sparkshed sql query.sql --table a=a.parquet --table b=b.parquet --compare
  sparkshed sql query.sql --stream cam1=in/cam1 --stream cam2=in/cam2 --watermark 'ts 10 seconds' --out found/

exit codes: 0 done; 1 the run failed, or a comparison found rows that Spark does not have;
2 the request is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_arguments(parser)
    streams.add_arguments(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="wait for more files until Ctrl-C; without it, join what is there",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="PATH",
        help="where a streaming query keeps its state, to go on later",
    )
    parser.add_argument("--out", type=Path, metavar="PATH", help="write the result: .parquet, .csv or .json")
    parser.add_argument("--limit", type=_count, default=20, help="rows to print (default: %(default)s)")
    parser.add_argument("--explain", action="store_true", help="print the plan, and run nothing")
    parser.add_argument(
        "--compare", action="store_true", help="run it without the hint, too, and print recall and speed"
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        msg = f"{text!r} is no number of rows"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Run the statement; print its rows or write them."""
    text = inputs.statement(args)
    _check(args)
    # Workers complain where only the first rows of what they found are taken.
    with local_session(args.master, quiet=True) as spark:
        inputs.register_tables(spark, args.table)
        streams.register_streams(spark, args)
        if args.explain:
            print(sparkshed.explain(spark, text), end="")
            return 0
        sparkshed.enable(spark)
        if args.stream:
            return streams.run_stream(spark, text, args)
        if args.compare:
            return compare(spark, text)
        frame = spark.sql(text)
        if args.out is None:
            frame.show(args.limit, truncate=False)
        else:
            writer = frame.write.format(inputs.output_format(args.out)).option("header", True)
            writer.save(str(args.out.resolve()))
            print(f"written to {args.out}", file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse what would fail or have no effect, before Spark starts."""
    inputs.check(args)
    streams.check(args, follow=args.follow, checkpoint=args.checkpoint)
    if args.compare and (args.stream or args.out is not None or args.explain):
        msg = "--compare runs a statement over tables and keeps no rows: leave --stream, --out, --explain out"
        raise CliError(msg)
    if args.out is not None and args.out.exists() and args.checkpoint is None:
        msg = f"{args.out} exists already; name a new path"
        raise CliError(msg)
    if args.out is not None:
        inputs.output_format(args.out, folder=bool(args.stream))
