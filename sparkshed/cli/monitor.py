"""`sparkshed monitor CHECKPOINT`: watch the joins of a streaming query that runs in any process."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkshed.cli.errors import CliError
from sparkshed.view.journal import Follower, NoJournal, journals_of
from sparkshed.view.terminal import plain_line, view

if TYPE_CHECKING:
    from rich.console import RenderableType

EXAMPLES = """examples:
  sparkshed monitor /data/checkpoint            # Ctrl-C ends the view, not the join
  sparkshed monitor /data/checkpoint --plain >> join.log
  sparkshed monitor /data/checkpoint --once"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("place", type=Path, metavar="CHECKPOINT", help="checkpointLocation of the query")
    parser.add_argument("--plain", action="store_true", help="a line for each micro-batch, not a live view")
    parser.add_argument("--once", action="store_true", help="print the last micro-batch, and end")
    parser.add_argument(
        "--every", type=float, default=0.5, help="seconds between looks (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    try:
        followers = {own.stem: Follower(own) for own in journals_of(args.place)}
    except NoJournal as error:
        raise CliError(str(error)) from error
    if args.once:
        for title, own in followers.items():
            own.read()
            print(plain_line(own.story, title))
        return 0
    with suppress(KeyboardInterrupt):
        if args.plain or not sys.stdout.isatty() or not has_rich():
            watch_plainly(followers, lambda: time.sleep(args.every))
        else:
            watch(followers, lambda: time.sleep(args.every))
    return 0


def has_rich() -> bool:
    """Whether the live view can be drawn."""
    try:
        import rich  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def watch_plainly(
    followers: dict[str, Follower], wait: Callable[[], None], until: Callable[[], bool] = lambda: False
) -> None:
    """A line for each micro-batch with rows."""
    told = dict.fromkeys(followers, -1)
    while True:
        last = until()
        for title, own in followers.items():
            own.read()
            if len(own.story.batches) != told[title]:
                told[title] = len(own.story.batches)
                print(plain_line(own.story, title), flush=True)
        if last:
            return
        wait()


def watch(
    followers: dict[str, Follower],
    wait: Callable[[], None],
    until: Callable[[], bool] = lambda: False,
    above: Callable[[], Sequence[RenderableType]] = tuple,
) -> None:
    """The live view, in a terminal.

    Args:
        followers: The journals, by titles.
        wait: Until the next look.
        until: Whether there is nothing more to see.
        above: What else is drawn, above the joins.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()

    def drawn() -> RenderableType:
        for own in followers.values():
            own.read()
        stories = [(title, own.story) for title, own in followers.items()]
        return view(stories, above(), console.width, console.height)

    with Live(
        drawn(), console=console, refresh_per_second=4, screen=False, vertical_overflow="visible"
    ) as live:
        while not until():
            wait()
            live.update(drawn())
        live.update(drawn())
