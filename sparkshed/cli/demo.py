"""`sparkshed demo`: live cameras, a burst of ten times as many rows, and joins that keep up with it.

Three cameras see the same things one after another. A result is one sighting by all three. In the middle of
the run ten times as much comes; the join with `grubjoin` does the part of the work that finds most, beside
one that drops rows at random, on the same input and the same machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sparkshed
from sparkshed.bench.streaming import DISTANCE, TEXT, WINDOW, started
from sparkshed.cli.errors import CliError
from sparkshed.cli.monitor import has_rich, watch, watch_plainly
from sparkshed.cli.report import write_page
from sparkshed.cli.session import local_session
from sparkshed.view.figures import amount, busy, percent
from sparkshed.view.journal import Follower, journals_of, read_story
from sparkshed.workloads.cameras import nonaligned
from sparkshed.workloads.live import LiveCameras

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

STRATEGIES = ("grubjoin", "randomdrop")
BURST = 10.0
#: Rows of the first camera whose partners are counted, to know the true answer.
_SAMPLE = 5000

EXAMPLES = """examples:
  sparkshed demo                                # about 90 seconds
  sparkshed demo --plain --seconds 30           # lines, for a log
  sparkshed demo --rate 500 --out run.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--master", default="local[2]", help="Spark master (default: %(default)s)")
    parser.add_argument(
        "--rate",
        type=float,
        default=200,
        help="rows per second and camera before the burst (default: %(default)g)",
    )
    parser.add_argument("--seconds", type=float, default=75, help="length of the run (default: %(default)g)")
    parser.add_argument("--plain", action="store_true", help="lines instead of a live view")
    parser.add_argument(
        "--out", type=Path, default=Path("sparkshed-demo.html"), help="the report (default: %(default)s)"
    )


@dataclass(slots=True)
class _Clock:
    """How far the run is; it starts when rows are joined."""

    seconds: float
    rate: float
    began: float | None = None

    @property
    def elapsed(self) -> float:
        return 0.0 if self.began is None else time.monotonic() - self.began

    @property
    def is_over(self) -> bool:
        return self.elapsed >= self.seconds

    def rate_now(self, _: float) -> float:
        """Rows in a second: ten times as many in the middle third."""
        burst = self.seconds / 3 <= self.elapsed < 2 * self.seconds / 3
        return self.rate * (BURST if burst else 1.0)


def run(args: argparse.Namespace) -> int:
    """Run the demo."""
    print("Three cameras see the same things, 0, 5 and 15 seconds apart. Which sightings belong together?\n")
    print(TEXT.format(strategy="grubjoin"))
    print(
        f"{args.rate:g} rows/s and camera, {BURST:g} times as many from {args.seconds / 3:.0f} s to "
        f"{2 * args.seconds / 3:.0f} s; the same again with SHED(randomdrop). z is the share of the exact "
        "join's work that is done. What was dropped is missed until its window is over. Starting Spark …",
        flush=True,
    )
    clock = _Clock(args.seconds, args.rate)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sparkshed-demo-")))
        spark = stack.enter_context(
            local_session(args.master, extra={"spark.driver.memory": "2g"}, quiet=True)
        )
        sparkshed.enable(spark)
        cameras = stack.enter_context(LiveCameras(folder / "input", nonaligned(3), clock.rate_now))
        plain = args.plain or not sys.stdout.isatty() or not has_rich()
        with suppress(KeyboardInterrupt), _queries(spark, folder, cameras) as queries:
            _wait_for_rows(queries, clock)
            _show(folder, queries, clock, plain=plain)
        cameras.stop()
        # A run that was cut short does not replace the page of a whole one.
        out = args.out if clock.is_over else args.out.with_stem(f"{args.out.stem}-cut-short")
        failed = _summary(folder, cameras, out)
    return 1 if failed else 0


@contextmanager
def _queries(spark: SparkSession, folder: Path, cameras: LiveCameras) -> Iterator[dict[str, StreamingQuery]]:
    """The joins, running beside each other on the same input."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(started(spark, name, folder / name, cameras)) for name in STRATEGIES}


def _wait_for_rows(queries: dict[str, StreamingQuery], clock: _Clock) -> None:
    """The run begins when both joins have had rows; Python workers take some seconds to start."""
    while not all(sparkshed.progress(query) for query in queries.values()):
        _check(queries)
        time.sleep(0.1)
    clock.began = time.monotonic()


def _check(queries: dict[str, StreamingQuery]) -> None:
    for name, query in queries.items():
        if not query.isActive:
            why = query.exception() or "it ended"
            msg = f"the join with {name} does not run any more: {why}"
            raise CliError(msg)


def _show(folder: Path, queries: dict[str, StreamingQuery], clock: _Clock, *, plain: bool) -> None:
    followers = {name: Follower(_journal(folder, name)) for name in STRATEGIES}

    def over() -> bool:
        _check(queries)
        return clock.is_over

    wait: Callable[[], None] = lambda: time.sleep(0.5)  # noqa: E731
    if plain:
        watch_plainly(followers, wait, over)
    else:
        watch(followers, wait, over, lambda: [_head(clock)])


def _head(clock: _Clock) -> str:
    phase = "ten times as many rows" if clock.rate_now(0.0) > clock.rate else "the usual rate"
    return f"{min(clock.elapsed, clock.seconds):3.0f} of {clock.seconds:.0f} s · {phase} · Ctrl-C ends it"


def _journal(folder: Path, strategy: str) -> Path:
    return journals_of(folder / strategy / "checkpoint")[0]


def _summary(folder: Path, cameras: LiveCameras, out: Path) -> bool:
    """What was found, in words, and the report; whether there is nothing to tell."""
    found = {}
    for name in STRATEGIES:
        with suppress(Exception):
            story = read_story(_journal(folder, name))
            batches = busy(story.batches, story.names)
            taken = [sum(int(own[f"{each}.arrived"]) for own in batches) for each in story.names]
            truth = cameras.true_results(WINDOW, DISTANCE, _SAMPLE, taken)
            found[name] = sum(int(own["results"]) for own in batches), truth, batches[-1]
    print()
    if not found:
        print("It was ended before any rows were joined, so there is nothing to report.")
        return True
    for name, (results, truth, last) in found.items():
        low, high = percent(last["total_completeness_low"]), percent(last["total_completeness_high"])
        told = f"{percent(last['total_completeness'])} reported ({low} to {high})"
        print(
            f"  {name:<10}  {amount(results):>8} results, {told}, {percent(results / max(1.0, truth))} true"
        )
    remark = ""
    if len(found) == len(STRATEGIES):
        first, second = (found[name][0] for name in STRATEGIES)
        remark = (
            f"grubjoin found {first / max(1, second):.1f} times as much as randomdrop, from the same rows on "
            "the same machine"
        )
        print(f"  {remark}")
        remark += f": {amount(first)} results, and {amount(second)}. This page is of the join with grubjoin."
    title = "Three cameras, and a burst of ten times as many rows"
    write_page(_journal(folder, "grubjoin"), out, title, remark)
    print(f"  report: {out.resolve()}")
    return False
