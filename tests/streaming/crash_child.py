"""Streaming joins in a process of their own, to be killed: `python crash_child.py FOLDER NAME...`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

import sparkshed
from sparkshed.cli.session import local_session
from sparkshed.planner.guide import Guide
from streaming.feeds import as_streams, restless

#: Statements that find everything.
EXACT = ("grubjoin", "atr", "ctr")
#: Streams with rows out of order, and streams in the order of time.
MIXED, ORDERED = ("a", "b", "c"), ("d", "e")

_THREE = (
    "a.id i, b.id j, c.id k FROM a JOIN b ON abs(a.x - b.x) <= 2 JOIN c ON abs(b.x - c.x) <= 2 "
    "WHERE greatest(a.ts, b.ts, c.ts) <= least(a.ts + INTERVAL 4 SECONDS, b.ts + INTERVAL 4 SECONDS, "
    "c.ts + INTERVAL 4 SECONDS)"
)
_BAND = "d.id i, e.id j FROM d JOIN e ON abs(d.x - e.x) <= 2 AND abs(d.ts - e.ts) <= INTERVAL 4 SECONDS"
_KEYS = "d.id i, e.id j FROM d JOIN e ON d.k = e.k"
#: With a key, which `prob` needs.
_NEAR_KEYS = f"{_KEYS} AND abs(d.ts - e.ts) <= INTERVAL 4 SECONDS"


@dataclass(frozen=True)
class Statement:
    """A join that is killed.

    Attributes:
        join: All but SELECT and the hint.
        hint: The strategy and its options.
        whole: The hint with which it is exact; Spark's own join by default.
        alike: Whether it finds the same rows however often it is killed: all choices follow from the seed and
            the order of arrival. A driver's decisions come when they come.
    """

    join: str
    hint: str
    whole: str = ""
    alike: bool = True

    def text(self, hint: str) -> str:
        """The statement with a hint, or with none."""
        return f"SELECT /*+ SHED({hint}, 'seed=1') */ {self.join}" if hint else f"SELECT {self.join}"


_SHED = "'budget=0.4', 'adapt=200 ms'"
STATEMENTS = {
    "grubjoin": Statement(_THREE, "grubjoin, 'budget=1', 'adapt=200 ms'"),
    # Routers that change their minds after every micro-batch.
    "atr": Statement(_THREE, "grubjoin, 'budget=1', 'adapt=200 ms', 'diffuse=atr:2'"),
    "ctr": Statement(_THREE, "exact, 'diffuse=ctr:2'"),
    "dual": Statement(_KEYS, "dual, 'rows=25'"),
    "dual-sheds": Statement(_KEYS, f"dual, 'rows=25', {_SHED}", "dual, 'rows=25'", alike=False),
    # One host, as memory that is divided by keys is divided otherwise in batch.
    "prob": Statement(_NEAR_KEYS, "prob, 'memory=30', 'diffuse=none'"),
    **{
        name: Statement(_BAND, f"{name}, 'memory=30'")
        for name in ("gdj", "age", "lru", "lfu", "fifo", "rand")
    },
    "grubjoin-sheds": Statement(_THREE, f"grubjoin, {_SHED}", alike=False),
    "adaptive-sheds": Statement(_BAND, f"adaptive, {_SHED}", alike=False),
    "randomdrop-sheds": Statement(_THREE, f"randomdrop, {_SHED}", alike=False),
}


def main(folder: Path, names: list[str]) -> None:
    """Join what is there, and end."""
    Guide.observe = restless(Random(os.getpid()))
    # Tasks are tried again, so that killed Python workers do not end the query.
    with local_session("local[2,4]") as spark:
        sparkshed.enable(spark)
        as_streams(spark, folder, list(MIXED))
        as_streams(spark, folder, list(ORDERED), delay="600 seconds")
        queries = []
        for name in names:
            own = STATEMENTS[name]
            writer = spark.sql(own.text(own.hint)).writeStream.format("parquet")
            writer = writer.option("checkpointLocation", str(folder / name / "checkpoint"))
            queries.append(writer.trigger(availableNow=True).start(str(folder / name / "out")))
        (folder / "started").touch()
        for query in queries:
            query.awaitTermination()
    (folder / "done").touch()


if __name__ == "__main__":
    os.setpgid(0, 0)
    main(Path(sys.argv[1]), sys.argv[2:])
