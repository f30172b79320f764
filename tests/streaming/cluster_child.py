"""A streaming join whose hosts are in another process than the driver: `python cluster_child.py FOLDER`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession

import sparkshed
from sparkshed.cli.session import local_session
from streaming.feeds import as_streams, as_tables, multiset

TEXT = (
    "SELECT {hint} a.id i, b.id j FROM a JOIN b ON abs(a.x - b.x) <= 2 "
    "AND abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
)
HINT = "/*+ SHED(grubjoin, 'budget=0.5', 'adapt=1 ms', 'seed=1') */"


def main(folder: Path) -> dict[str, object]:
    """Join what is there; what was found, and where."""
    with local_session("local-cluster[1,2,1024]") as spark:
        as_tables(spark, folder, ["a", "b"])
        whole = multiset(spark.sql(TEXT.format(hint="")))
        sparkshed.enable(spark)
        as_streams(spark, folder, ["a", "b"])
        writer = spark.sql(TEXT.format(hint=HINT)).writeStream.format("memory").queryName("found")
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found = multiset(spark.table("found"))
        while len(sparkshed.history(query)) < len(query.recentProgress):
            time.sleep(0.1)
        return {
            "driver": spark._jvm.java.lang.ProcessHandle.current().pid(),
            "executors": executors(spark),
            "part": found <= whole,
            "share": sum(found.values()) / sum(whole.values()),
            "decision": int(sparkshed.history(query)["decision"].max()),
        }


def executors(spark: SparkSession) -> list[int]:
    """The processes that Python workers belong to."""

    def grandparent(_: int) -> int:
        lines = Path(f"/proc/{os.getppid()}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("PPid"))

    return spark.sparkContext.parallelize(range(2), 2).map(grandparent).distinct().collect()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
