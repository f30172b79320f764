"""`sparkshed bench NAME`: time engines on the same data in one run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from sparkshed.bench import join
from sparkshed.cli.session import local_session

BENCHES = {"join": join.run}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", choices=sorted(BENCHES), help="which benchmark")
    parser.add_argument("--json", action="store_true", help="print JSON, one list of rows")
    parser.add_argument("--master", default="local[2]", help="Spark master (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=200, help="rows per second and stream")
    parser.add_argument("--seconds", type=float, default=60, help="length of the streams")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each engine (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print its rows."""
    with local_session(args.master) as spark:
        timings = BENCHES[args.name](spark, args.rate, args.seconds, args.repeats)
    print(json.dumps([t.as_dict() for t in timings], indent=2) if args.json else table(timings))
    return 0


def table(timings: Sequence[join.Timing]) -> str:
    """The rows under each other.

    >>> print(table([join.Timing("w", "spark", 4.0, 7, 1.0)]))
    workload  engine  seconds  results  ratio
    w         spark     4.000        7   1.00
    """
    rows = [("workload", "engine", "seconds", "results", "ratio")]
    rows += [(t.workload, t.engine, f"{t.seconds:.3f}", str(t.results), f"{t.ratio:.2f}") for t in timings]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shape = "  ".join(f"{{:{'<' if i < 2 else '>'}{width}}}" for i, width in enumerate(widths))
    return "\n".join(shape.format(*row) for row in rows)
