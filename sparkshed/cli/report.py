"""`sparkshed report CHECKPOINT`: what a streaming join did, as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from sparkshed.cli.errors import CliError
from sparkshed.view.journal import NoJournal, journals_of, read_story
from sparkshed.view.page import page_of

EXAMPLES = """examples:
  sparkshed report /data/checkpoint --out run.html
  sparkshed report /data/checkpoint --join 2
  sparkshed report /data/checkpoint/sparkshed/join-1.old.jsonl"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "place",
        type=Path,
        metavar="CHECKPOINT|JOURNAL",
        help="checkpointLocation of a query, or a journal in it",
    )
    parser.add_argument("--join", type=int, default=1, help="which join of the query (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), help="the page to write (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    try:
        found = journals_of(args.place)
    except NoJournal as error:
        raise CliError(str(error)) from error
    if not 1 <= args.join <= len(found):
        msg = f"{args.place} has {len(found)} join(s); name one of them with --join."
        raise CliError(msg)
    write_page(found[args.join - 1], args.out)
    print(f"report: {args.out}")
    return 0


def write_page(journal: Path, out: Path, title: str | None = None, remark: str = "") -> None:
    """The page of one journal.

    Raises:
        CliError: It cannot be written.
    """
    story = read_story(journal)
    name = title or story.plan.get("name") or "Streaming join"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page_of(story, str(name), remark), encoding="utf-8")
    except OSError as error:
        msg = f"the report cannot go to {out}: {error.strerror}. Name another file with --out."
        raise CliError(msg) from error
