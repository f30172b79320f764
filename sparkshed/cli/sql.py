"""`sparkshed sql`: run one statement over files."""

from __future__ import annotations

import argparse
from pathlib import Path

import sparkshed
from sparkshed.cli import inputs
from sparkshed.cli.errors import CliError
from sparkshed.cli.session import local_session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_arguments(parser)
    parser.add_argument("--out", type=Path, metavar="PATH", help="write the result: .parquet, .csv or .json")
    parser.add_argument("--limit", type=int, default=20, help="rows to print (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Run the statement; print its rows or write them."""
    text = inputs.statement(args)
    for _, path in args.table:
        inputs.format_of(path)
    if args.out is not None and args.out.exists():
        msg = f"{args.out} exists already; name a new path"
        raise CliError(msg)
    if args.out is not None and args.out.suffix.lower() not in inputs.FORMATS:
        msg = f"{args.out}: unknown format; known are {', '.join(inputs.FORMATS)}"
        raise CliError(msg)
    with local_session(args.master) as spark:
        inputs.register_tables(spark, args.table)
        sparkshed.enable(spark)
        frame = spark.sql(text)
        if args.out is None:
            frame.show(args.limit, truncate=False)
        else:
            format_ = inputs.FORMATS[args.out.suffix.lower()]
            frame.write.format(format_).option("header", True).save(str(args.out.resolve()))
    return 0
