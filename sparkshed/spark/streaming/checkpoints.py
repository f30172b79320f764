"""Checkpoints that belong to another query, found before anything starts.

Hosts compare their state with the plan, too, and name what differs. But that is in the middle of a batch, and
Spark stops a query whose sources do not fit its log even before, in words of its own. So what the joins of a
query are is written beside the log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sparkshed.engine.errors import CheckpointError
from sparkshed.engine.host import refuse_others
from sparkshed.planner.streaming import StreamingPlan
from sparkshed.sql.errors import PlanError

#: The file in a checkpoint.
_NAME = "sparkshed.json"


def claim(session: SparkSession, location: str, plans: Sequence[StreamingPlan]) -> None:
    """Write down what the joins of a query are, or compare them with what was written.

    Raises:
        PlanError: The checkpoint was written by another query.
    """
    marks = [plan.marks for plan in plans]
    # What cannot be read or written here Spark finds out itself, and hosts look at their own state.
    with suppress(Py4JJavaError):
        folder = _Folder(session, location)
        if not folder.has_offsets():
            folder.write(_NAME, json.dumps(marks))
            return
        text = folder.read(_NAME)
        if text is not None:
            _compare(location, json.loads(text), marks)


def _compare(location: str, found: list[dict[str, str]], marks: list[dict[str, str]]) -> None:
    if len(found) != len(marks):
        msg = (
            f"the checkpoint {location} was written by another query: it has {len(found)} SHED join(s), and "
            f"this one has {len(marks)}. Fix: give this query a checkpointLocation of its own, or run the "
            "statement that the checkpoint was made by."
        )
        raise PlanError(msg)
    try:
        for own, expected in zip(found, marks, strict=True):
            refuse_others(own, expected)
    except CheckpointError as error:
        msg = f"{location}: {error}."
        raise PlanError(msg) from None


class _Folder:
    """A checkpoint, wherever it is."""

    def __init__(self, session: SparkSession, location: str) -> None:
        self._jvm: Any = session.sparkContext._jvm
        self._location = location
        path = self._path("offsets")
        self._system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._location, name)

    def has_offsets(self) -> bool:
        """Whether a micro-batch was planned."""
        path = self._path("offsets")
        if not self._system.exists(path):
            return False
        return any(own.getPath().getName().isdigit() for own in self._system.listStatus(path))

    def write(self, name: str, text: str) -> None:
        stream = self._system.create(self._path(name), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is none."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
