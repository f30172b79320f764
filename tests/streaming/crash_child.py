"""A streaming join in a process of its own, to be killed: `python crash_child.py FOLDER`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import sparkshed
from sparkshed.cli.session import local_session
from streaming.feeds import as_streams

TEXT = (
    "SELECT {hint} a.id i, b.id j, c.id k FROM a JOIN b ON abs(a.x - b.x) <= 2 JOIN c ON abs(b.x - c.x) <= 2 "
    "WHERE greatest(a.ts, b.ts, c.ts) <= least(a.ts + INTERVAL 4 SECONDS, b.ts + INTERVAL 4 SECONDS, "
    "c.ts + INTERVAL 4 SECONDS)"
)


def main(folder: Path) -> None:
    """Join what is there, and end."""
    # Tasks are tried again, so that killed Python workers do not end the query.
    with local_session("local[2,4]") as spark:
        sparkshed.enable(spark)
        as_streams(spark, folder, ["a", "b", "c"])
        frame = spark.sql(TEXT.format(hint="/*+ SHED(grubjoin, 'budget=1', 'adapt=200 ms', 'seed=1') */"))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(folder / "out"))
        (folder / "started").touch()
        query.awaitTermination()
    (folder / "done").touch()


if __name__ == "__main__":
    os.setpgid(0, 0)
    main(Path(sys.argv[1]))
