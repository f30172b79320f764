"""Checkpoints that belong to another query, found before anything starts.

Hosts compare their state with the plan, and name what differs. But the exact join has one source fewer than
joins that shed, which also read decisions, and Spark stops a query whose sources do not fit its log.
"""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sparkshed.sql.errors import PlanError


def refuse_other_kind(session: SparkSession, location: str, *, sheds: bool) -> None:
    """Refuse the checkpoint of an exact join for one that sheds, and the other way round.

    Raises:
        PlanError: It is one.
    """
    offsets = _logged(session, location)
    if offsets is None:
        return
    # Offsets of decisions, see `control`; those of other sources are not like that.
    shed = any(own == "{}" or '"decision":' in own for own in offsets)
    if shed != sheds:
        kinds = ("an exact join", "a join that sheds")
        msg = (
            f"the checkpoint {location} was written by {kinds[shed]}, and this is {kinds[sheds]}. Fix: give "
            "this query a checkpointLocation of its own, or run the statement that it was made by."
        )
        raise PlanError(msg)


def _logged(session: SparkSession, location: str) -> list[str] | None:
    """The newest offset of each source in a checkpoint; None if there are none that can be read."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    # What cannot be read here Spark finds out itself.
    with suppress(Py4JJavaError):
        folder = jvm.org.apache.hadoop.fs.Path(location, "offsets")
        system = folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
        if not system.exists(folder):
            return None
        found = [own.getPath() for own in system.listStatus(folder) if own.getPath().getName().isdigit()]
        if not found:
            return None
        stream = system.open(max(found, key=lambda path: int(path.getName())))
        try:
            text = str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
        # A version, the metadata, and one line for each source.
        lines = text.strip("\n").split("\n")
        return lines[2:] if lines[0] == "v1" and len(lines) > 2 else None
    return None
