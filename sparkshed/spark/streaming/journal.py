"""What a running join writes down for whoever looks at it: other processes, and reports afterwards.

    <checkpoint>/sparkshed/join-1.jsonl      one JSON object in each line
        {"plan": …}       at the start of each run
        {"decision": …}   what is harvested, when it changes
        {"batch": …}      the figures of a micro-batch

When a file is long, a new one begins; the one before it stays as `join-1.old.jsonl`.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

#: Bytes after which a new file begins.
MOST_BYTES = 32 << 20
FOLDER = "sparkshed"

_log = logging.getLogger("sparkshed")


class Journal:
    """The file of one join; a join whose checkpoint is not on a local disk has none."""

    def __init__(self, checkpoint: str | None, number: int, plan: dict[str, Any]) -> None:
        """Begin a run.

        Args:
            checkpoint: Where the query keeps its state, as Spark writes it.
            number: Of the join in its query, from 1.
            plan: What there is to say of the plan.
        """
        folder = local_path(checkpoint)
        self._path = None if folder is None else folder / FOLDER / f"join-{number}.jsonl"
        self._plan = plan
        self._decision: Any = None
        self.write("plan", plan)

    def decide(self, decision: dict[str, Any]) -> None:
        """A decision, if it is another one than the last."""
        if decision != self._decision:
            self._decision = decision
            self.write("decision", decision)

    def write(self, kind: str, data: dict[str, Any]) -> None:
        """Append a line; what goes wrong with it must not harm the join."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
                self._path.replace(self._path.with_suffix(".old.jsonl"))
                lines = [("plan", self._plan), ("decision", self._decision), (kind, data)]
            else:
                lines = [(kind, data)]
            with self._path.open("a") as file:
                file.writelines(
                    json.dumps({key: value}, separators=(",", ":")) + "\n"
                    for key, value in lines
                    if value is not None
                )
        except (OSError, TypeError, ValueError):
            _log.warning(
                "%s cannot be written, so nobody else can watch this join", self._path, exc_info=True
            )
            self._path = None


def local_path(location: str | None) -> Path | None:
    """A path on a local disk; None if it is somewhere else.

    >>> local_path("file:/tmp/a%20b").name, local_path("s3://bucket/a"), local_path("/tmp/c").name
    ('a b', None, 'c')
    """
    if not location:
        return None
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else location)
