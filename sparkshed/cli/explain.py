"""`sparkshed explain`: show how a statement would run."""

from __future__ import annotations

import argparse

import sparkshed
from sparkshed.cli import inputs, streams
from sparkshed.cli.session import local_session

MODES = ("simple", "extended", "formatted")

EXAMPLES = """examples:
  sparkshed explain query.sql --table cam1=cam1.parquet --table cam2=cam2.csv
  sparkshed explain query.sql --stream cam1=in/cam1 --stream cam2=in/cam2 --watermark 'ts 10 seconds'
  sparkshed explain -e 'SELECT /*+ SHED(grubjoin) */ …' --table a=a/ --table b=b/ --mode extended"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    inputs.add_arguments(parser)
    streams.add_arguments(parser)
    parser.add_argument("--mode", choices=MODES, default="simple", help="how much to show")


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    text = inputs.statement(args)
    inputs.check(args)
    streams.check(args)
    with local_session(args.master, quiet=True) as spark:
        inputs.register_tables(spark, args.table)
        streams.register_streams(spark, args)
        print(sparkshed.explain(spark, text, mode=args.mode))
    return 0
