"""`sparkshed bench NAME`: time engines on the same data in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

from sparkshed.bench import join, kernels, targets
from sparkshed.bench.cases import CASES
from sparkshed.bench.report import table
from sparkshed.cli.session import local_session

BENCHES: dict[str, Callable[..., list]] = {"join": join.run, "kernels": kernels.run}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", choices=sorted(BENCHES), help="which benchmark")
    parser.add_argument("--json", action="store_true", help="print JSON, one list of rows")
    parser.add_argument("--master", default="local[2]", help="Spark master (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each engine (default: %(default)s)")
    one = parser.add_argument_group("join")
    one.add_argument("--rate", type=float, default=200, help="rows per second and stream")
    one.add_argument("--seconds", type=float, default=60, help="length of the streams")
    many = parser.add_argument_group("kernels")
    names = [case.name for case in CASES]
    many.add_argument("--workload", action="append", choices=names, help="only this one; may be repeated")
    many.add_argument(
        "--engine", action="append", choices=list(kernels.ENGINES), help="only this one; may be repeated"
    )
    many.add_argument("--scale", type=float, default=1, help="factor for all rates (default: %(default)s)")
    many.add_argument("--limit", type=float, default=600, help="seconds before a run is stopped")


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print its rows."""
    rows, more = _RUNS[args.name](args)
    dicts = [row.as_dict() for row in rows]
    print(json.dumps(dicts, indent=2) if args.json else "\n\n".join([table(dicts), *more]))
    return 0


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _join(args: argparse.Namespace) -> tuple[Sequence, list[str]]:
    with local_session(args.master) as spark:
        return BENCHES["join"](spark, args.rate, args.seconds, args.repeats), []


def _kernels(args: argparse.Namespace) -> tuple[Sequence, list[str]]:
    cases = [case.scaled(args.scale) for case in CASES if case.name in (args.workload or [case.name])]
    engines = [engine for engine in kernels.ENGINES if engine in (args.engine or [engine])]
    with kernels.Processes(args.master, args.limit) as launch:
        rows = BENCHES["kernels"](launch, cases, engines, args.repeats, _progress)
    found = [target.as_dict() for target in targets.targets(rows, args.limit)]
    return rows, ["Targets (times as long as sparkshed takes)\n" + table(found)] if found else []


_RUNS = {"join": _join, "kernels": _kernels}
