"""`sparkshed experiment NAME`: run an experiment on a virtual clock; without a name, list them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sparkshed.bench.report import table
from sparkshed.cli.errors import CliError
from sparkshed.experiments.catalogue import EXPERIMENTS
from sparkshed.experiments.result import Contradiction, Result, Settings
from sparkshed.sql.errors import listing, suggest
from sparkshed.workloads.recorded import DataError

_MISSING = "{} is needed to draw the picture: pip install 'sparkshed[experiments]'"

EXAMPLES = """examples:
  sparkshed experiment                          # lists them
  sparkshed experiment fig11 --quick
  sparkshed experiment gdj-fig4 --data air.parquet --key temp --streams a/2014,a/2015"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="which experiment; without it, all are listed"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    parser.add_argument("--quick", action="store_true", help="few points and short runs: some seconds")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture (default: here)")
    parser.add_argument("--data", type=Path, help="parquet or CSV with columns stream, ts and values to join")
    parser.add_argument("--key", metavar="COLUMN", help="the column of --data to join (default: the first)")
    parser.add_argument(
        "--streams",
        metavar="NAMES",
        type=lambda names: tuple(names.split(",")),
        help="the streams of --data, like a,b; a/2014 is one year of a (default: the first two)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of streams and choices (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Run an experiment, and print and draw what it found."""
    if args.name is None:
        width = max(map(len, EXPERIMENTS))
        print("\n".join(f"{name:<{width}}  {own.title}" for name, own in EXPERIMENTS.items()))
        return 0
    experiment = EXPERIMENTS.get(args.name)
    if experiment is None:
        msg = f"there is no experiment `{args.name}`.{suggest(args.name, EXPERIMENTS)} "
        raise CliError(msg + f"Experiments: {listing(EXPERIMENTS)}.")
    if args.data is not None and not experiment.takes_data:
        others = [name for name, own in EXPERIMENTS.items() if own.takes_data]
        msg = f"{args.name} has streams of its own; --data is for {listing(others)}."
        raise CliError(msg)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"the picture cannot go to {args.out}: {error.strerror}. Name another folder with --out."
        raise CliError(msg) from error
    settings = Settings(args.quick, args.seed, args.data, args.key, args.streams)
    try:
        with _progress(args.name) as report:
            result = experiment.run(replace(settings, progress=report))
    except DataError as error:
        raise CliError(str(error)) from error
    except Contradiction as error:
        print(f"{args.name} contradicts itself: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(result.as_dict(), indent=2, allow_nan=False))
    else:
        print(_text(result))
    try:
        from sparkshed.experiments.plots import draw

        path = draw(experiment, result, args.out)
    except ModuleNotFoundError as error:
        raise CliError(_MISSING.format(str(error.name).partition(".")[0])) from error
    print(f"picture: {path}", file=sys.stderr if args.json else sys.stdout)
    return 0


def _text(result: Result) -> str:
    width = max(map(len, result.headline))
    numbers = "\n".join(f"{name:<{width}}  {value:g}" for name, value in result.headline.items())
    return f"{table(result.rows)}\n\n{numbers}"


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr; nothing at all where rich is missing."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:
        yield lambda done, total, label: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total, label: bar.update(
            task, completed=done, total=total, description=f"{name}: {label}"
        )
