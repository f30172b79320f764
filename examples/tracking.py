"""Track objects across three cameras as a stream, with half of the work that the full join takes.

Run it with: python examples/tracking.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession

import sparkshed
from sparkshed.workloads.cameras import camera_sql, camera_streams, camera_table

FILES = 5


def film(folder: Path) -> None:
    """Let each camera write a file for every stretch of time; an object passes them 0, 5 and 15 s apart."""
    for number, stream in enumerate(camera_streams(rate=30, seconds=100, tau=(0, 5, 15)), 1):
        table = camera_table(stream)
        size = table.num_rows // FILES
        camera = folder / f"cam{number}"
        camera.mkdir()
        for part in range(FILES):
            path = camera / f"{part}.parquet"
            pq.write_table(table.slice(part * size, size), path)
            # Spark reads files in the order of their times, and these are written in one moment.
            os.utime(path, (1e9 + part, 1e9 + part))


def main() -> tuple[set[Row], set[Row], float]:
    """Join the streams; returns what was found, the exact answer, and the share that sparkshed reports."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film(folder)
        recorded = {cam: spark.read.parquet(str(folder / cam)) for cam in ("cam1", "cam2", "cam3")}

        for cam, frame in recorded.items():
            live = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1)
            # Without a watermark the join would keep every row for ever.
            watched = live.parquet(str(folder / cam)).withWatermark("ts", "1 second")
            watched.createOrReplaceTempView(cam)
        # Files that are all there cause no load, so the budget is fixed here. With cameras that go on
        # filming, write SHED(grubjoin): the load decides then.
        sightings = spark.sql(camera_sql(hint="SHED(grubjoin, 'budget=0.5', 'seed=1')"))
        query = (
            sightings.writeStream.format("memory")
            .queryName("tracked")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(sparkshed.history(query)[["batch", "z", "results", "completeness"]].to_string(index=False))
        share = sparkshed.progress(query)["total_completeness"]
        found = set(spark.table("tracked").collect())

        for cam, frame in recorded.items():
            frame.createOrReplaceTempView(cam)
        exact = set(spark.sql(camera_sql(hint="SHED(exact)")).collect())
    print(f"reported share {share:.2f}, true share {len(found) / len(exact):.2f}")
    sparkshed.disable(spark)
    return found, exact, share


if __name__ == "__main__":
    main()
