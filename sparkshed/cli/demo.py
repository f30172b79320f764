"""`sparkshed demo`: three cameras, one query, its plan and its time beside Spark's."""

from __future__ import annotations

import argparse

import sparkshed
from sparkshed.bench import join
from sparkshed.cli.session import local_session
from sparkshed.workloads.cameras import camera_sql, camera_streams, nonaligned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--master", default="local[2]", help="Spark master (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=200, help="rows per second and camera")
    parser.add_argument("--seconds", type=float, default=60, help="length of the streams")


def run(args: argparse.Namespace) -> int:
    """Run the demo."""
    rows = int(args.rate * args.seconds)
    query = camera_sql(3, hint=join.HINT)
    print(f"Three cameras, {rows} rows each ({args.rate:g} rows/s for {args.seconds:g} s),")
    lags = ", ".join(f"{tau:g} s" for tau in nonaligned(3).tau)
    print(f"with lags of {lags}. A result is one sighting by all three within 20 s.\n")
    print(query, end="\n\n")
    with local_session(args.master) as spark:
        join.warm_up(spark)
        join.register_cameras(spark, camera_streams(args.rate, args.seconds))
        print(sparkshed.explain(spark, query), end="\n\n")
        print("Running it, and the same SQL without the hint on plain Spark …", flush=True)
        runs = {name: [join.measure(frame)] for name, frame in join.engines(spark).items()}
    plain, shed = join.compare("demo", runs)
    print(f"  rows found     {shed.results}, the same number on both")
    print(f"  sparkshed      {shed.seconds:.2f} s")
    print(f"  plain Spark    {plain.seconds:.2f} s")
    print(f"  ratio          {shed.ratio:.2f} (Spark's time / sparkshed's)")
    return 0
