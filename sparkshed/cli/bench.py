"""`sparkshed bench NAME`: time engines on the same data in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from sparkshed.bench import (
    growth,
    join,
    kernels,
    memory,
    microbatches,
    policies,
    scaling,
    soak,
    streaming,
    targets,
)
from sparkshed.bench.cases import CASES
from sparkshed.bench.report import table
from sparkshed.cli.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows under the names of what they are; the rows of the benchmark itself come first.
Sections: TypeAlias = dict[str, list[Any]]

BENCHES: dict[str, Callable[..., list[Any]]] = {
    "join": join.run,
    "kernels": kernels.run,
    "growth": growth.run,
    "memory": memory.run,
    "microbatches": microbatches.run,
    "policies": policies.policies,
    "scaling": scaling.run,
    "soak": soak.run,
    "streaming": streaming.run,
}


#: Length of the streams. Windows of 20 s whose rows meet 15 s later are full after 35 s; the middle half of a
#: run under overload is to come after that.
_SECONDS, _OVERLOAD = 60.0, 180.0

EXAMPLES = """examples:
  sparkshed bench join                          # beside plain Spark
  sparkshed bench kernels                       # beside DuckDB, Polars and Spark
  sparkshed bench streaming --json
  sparkshed bench scaling --rate 800 --seconds 40
  sparkshed bench soak --rate 600 --seconds 1800"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", choices=sorted(BENCHES), help="which benchmark")
    parser.add_argument("--json", action="store_true", help="print JSON, one list of rows")
    parser.add_argument("--master", default="local[2]", help="Spark master (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each engine (default: %(default)s)")
    one = parser.add_argument_group("join, microbatches, scaling, soak, streaming")
    one.add_argument("--rate", type=float, default=200, help="rows per second and stream")
    one.add_argument(
        "--seconds", type=float, help=f"length of the streams (default: 60; streaming: {_OVERLOAD:g})"
    )
    many = parser.add_argument_group("kernels, growth, memory, policies")
    names = [case.name for case in CASES]
    many.add_argument("--workload", action="append", choices=names, help="only this one (kernels)")
    many.add_argument(
        "--engine", action="append", choices=list(kernels.ENGINES), help="only this one (kernels)"
    )
    many.add_argument("--scale", type=float, default=1, help="factor for all rates (default: %(default)s)")
    many.add_argument("--limit", type=float, default=600, help="seconds before a run is stopped")


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print its rows."""
    sections = {title: [row.as_dict() for row in rows] for title, rows in _RUNS[args.name](args).items()}
    if args.json:
        # The targets of `kernels` follow from its rows; the exponents of `growth` are what it is for.
        answer = sections if args.name == "growth" else next(iter(sections.values()))
        print(json.dumps(answer, indent=2))
    else:
        texts = [table(rows) for rows in sections.values() if rows]
        print("\n\n".join(texts))
    return 0


#: The windows of Spark's own joins are in its heap, and they come close to the usual gigabyte.
_ROOMY = {"spark.driver.memory": "4g"}
#: All of the heap is resident from the start, so that it is seen if anything else grows.
_STEADY = {
    "spark.driver.memory": "1500m",
    "spark.driver.defaultJavaOptions": "-Xms1500m -XX:+AlwaysPreTouch",
}


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _join(args: argparse.Namespace) -> Sections:
    with local_session(args.master, extra=_ROOMY) as spark:
        return {"rows": BENCHES["join"](spark, args.rate, args.seconds or _SECONDS, args.repeats)}


def _kernels(args: argparse.Namespace) -> Sections:
    cases = [case.scaled(args.scale) for case in CASES if case.name in (args.workload or [case.name])]
    engines = [engine for engine in kernels.ENGINES if engine in (args.engine or [engine])]
    with kernels.Processes(args.master, args.limit) as launch:
        rows = BENCHES["kernels"](launch, cases, engines, args.repeats, _progress)
    return {"rows": rows, "targets": targets.targets(rows, args.limit)}


def _growth(args: argparse.Namespace) -> Sections:
    with kernels.Processes(args.master, args.limit) as launch:
        cells = BENCHES["growth"](launch, args.scale, _progress)
    return {"cells": cells, "exponents": growth.exponents(cells)}


def _memory(args: argparse.Namespace) -> Sections:
    with kernels.Processes(args.master, args.limit) as launch:
        return {"rows": BENCHES["memory"](launch, args.scale, _progress)}


def _policies(args: argparse.Namespace) -> Sections:
    return {"rows": BENCHES["policies"](args.scale, args.repeats, _progress)}


def _soak(args: argparse.Namespace) -> Sections:
    with local_session(args.master, extra=_STEADY) as spark:
        return {"rows": BENCHES["soak"](spark, args.rate, args.seconds or _SECONDS, _progress)}


def _streaming(args: argparse.Namespace) -> Sections:
    with local_session(args.master, extra=_ROOMY) as spark:
        return {"rows": BENCHES["streaming"](spark, args.seconds or _OVERLOAD, _progress)}


def _microbatches(args: argparse.Namespace) -> Sections:
    with local_session(args.master, extra=_ROOMY) as spark:
        seconds = args.seconds or _SECONDS
        rows = BENCHES["microbatches"](spark, args.rate, seconds, args.repeats, _progress)
    return {"rows": rows}


def _scaling(args: argparse.Namespace) -> Sections:
    def session(master: str) -> AbstractContextManager[SparkSession]:
        return local_session(master, extra=_ROOMY)

    return {"rows": BENCHES["scaling"](session, args.rate, args.seconds or _SECONDS, _progress)}


_RUNS: dict[str, Callable[[argparse.Namespace], Sections]] = {
    "join": _join,
    "kernels": _kernels,
    "growth": _growth,
    "memory": _memory,
    "microbatches": _microbatches,
    "policies": _policies,
    "scaling": _scaling,
    "soak": _soak,
    "streaming": _streaming,
}
