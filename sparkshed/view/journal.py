"""The journal of a join, read while it is written or afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkshed.sql.errors import listing

Record = dict[str, Any]
#: Folders that a message names.
_MOST_NAMED = 8


class NoJournal(Exception):
    """There is nothing to look at; the message says why, and what to do."""


@dataclass(slots=True)
class Story:
    """What a journal says of one run after another.

    Attributes:
        plan: That of the last run.
        batches: Figures of all micro-batches.
        decisions: Each with how many micro-batches came before it.
        runs: How many micro-batches came before each run.
    """

    plan: Record = field(default_factory=dict)
    batches: list[Record] = field(default_factory=list)
    decisions: list[tuple[int, Record]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Take in a line; one that was cut off when its process died says nothing."""
        try:
            ((kind, data),) = json.loads(line).items()
        except (ValueError, AttributeError):
            return
        if kind == "plan":
            if not self.plan or data["run"] != self.plan["run"]:
                self.runs.append(len(self.batches))
            self.plan = data
        elif kind == "decision":
            self.decisions.append((len(self.batches), data))
        elif kind == "batch":
            self.batches.append(data)

    @property
    def names(self) -> list[str]:
        """Names of the streams."""
        return [str(own["name"]) for own in self.plan.get("streams", ())]

    @property
    def decision(self) -> Record | None:
        """The last decision."""
        return self.decisions[-1][1] if self.decisions else None


class Follower:
    """Reads what is new in a journal, again and again."""

    def __init__(self, path: Path) -> None:
        """Begin at the start of the file, and with the one before it."""
        self.path = path
        self.story = Story()
        self._place = 0
        self._rest = ""
        self._identity: int | None = None
        former = path.with_suffix(".old.jsonl")
        if former.exists():
            for line in former.read_text(errors="replace").splitlines():
                self.story.add(line)

    def read(self) -> bool:
        """Take in what was written since; whether there was anything."""
        try:
            with self.path.open(errors="replace") as file:
                identity = self.path.stat().st_ino
                if identity != self._identity:
                    # The file is a new one: the old one was full.
                    self._identity, self._place, self._rest = identity, 0, ""
                file.seek(self._place)
                text = file.read()
                self._place = file.tell()
        except FileNotFoundError:
            return False
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self.story.add(line)
        return bool(lines)


def read_story(path: Path) -> Story:
    """All of a journal."""
    follower = Follower(path)
    follower.read()
    return follower.story


def journals_of(place: Path) -> list[Path]:
    """The journals at a place: that of a checkpoint, of the folder in it, or one file.

    Raises:
        NoJournal: There is none.
    """
    if place.is_file():
        return [place]
    for folder in (place / "sparkshed", place):
        found = sorted(own for own in folder.glob("join-*.jsonl") if not own.name.endswith(".old.jsonl"))
        if found:
            return found
    if not place.exists():
        msg = f"{place} does not exist. Name the checkpointLocation of a streaming query with a SHED join."
        raise NoJournal(msg)
    inside = sorted({own.parent.parent.name for own in place.glob("*/sparkshed/join-*.jsonl")})
    hint = f" There are journals in folders of it: {listing(inside[:_MOST_NAMED])}." if inside else ""
    msg = (
        f"{place} has no journal of a SHED join. A join begins one when its query starts, in the "
        f"checkpointLocation, if that is on a local disk.{hint}"
    )
    raise NoJournal(msg)
