"""Checkpoints that belong to another query, found before anything starts.

Hosts compare their state with the plan, and name what differs. But a query with more or fewer sources than
its checkpoint never gets that far.
"""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from sparkshed.spark.streaming.watermarks import sources_of
from sparkshed.sql.errors import PlanError


def refuse_other_sources(frame: DataFrame, location: str) -> None:
    """Refuse a checkpoint of a query with another number of sources.

    Raises:
        PlanError: It is one.
    """
    known, own = _logged_sources(frame.sparkSession, location), sources_of(frame)
    if known is not None and known != own:
        msg = (
            f"the checkpoint {location} was written by another query: it has {known} sources and this one "
            f"has {own}. The exact join has one fewer than joins that shed, which also read decisions. Fix: "
            "give this query a checkpointLocation of its own, or run the statement that it was made by."
        )
        raise PlanError(msg)


def _logged_sources(session: SparkSession, location: str) -> int | None:
    """Sources in the newest offsets of a checkpoint; None if there are none that can be read."""
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
        version, _, *offsets = text.splitlines()
        return len(offsets) if version == "v1" else None
    return None
