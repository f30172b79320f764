"""Read JSON messages from a broker, join them, and write JSON messages back.

Files stand in for the broker, so that this runs anywhere. They have the columns of Spark's Kafka source: key and
value as binary, and the timestamp. Two lines change for Kafka; comments say which.

Run it with: python examples/broker.py
"""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

import sparkshed

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
MESSAGE = "key BINARY, value BINARY, timestamp TIMESTAMP"

MATCHED = """
SELECT {hint} c.key, to_json(struct(c.ad, v.page, unix_seconds(v.ts) - unix_seconds(c.ts) AS seconds)) AS value
FROM clicks c JOIN visits v
  ON c.user = v.user AND v.ts BETWEEN c.ts AND c.ts + INTERVAL 30 SECONDS
"""


def produce(topic: Path, field: str, every: int, count: int) -> None:
    """Write messages such as {"user": 3, "ad": "ad 7"} to a topic."""
    users = [number * 7 % 20 for number in range(count)]
    values = [{"user": user, field: f"{field} {number % 9}"} for number, user in enumerate(users)]
    topic.mkdir()
    messages = pa.table(
        {
            "key": pa.array([str(user).encode() for user in users]),
            "value": pa.array([json.dumps(value).encode() for value in values]),
            "timestamp": pa.array(
                [START + timedelta(seconds=every * number) for number in range(count)],
                pa.timestamp("us", "UTC"),
            ),
        }
    )
    pq.write_table(messages, topic / "0.parquet")


def consume(spark: SparkSession, topic: Path) -> DataFrame:
    # For Kafka: spark.readStream.format("kafka").option("kafka.bootstrap.servers", …).option("subscribe", topic).load()
    return spark.readStream.schema(MESSAGE).parquet(str(topic))


def publish(messages: DataFrame, topic: Path) -> DataStreamWriter:
    # For Kafka: messages.writeStream.format("kafka").option("kafka.bootstrap.servers", …).option("topic", topic)
    return messages.writeStream.format("parquet").option("path", str(topic))


def main() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Run the pipeline; returns the messages on the topic of matches, and those that should be there."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    with tempfile.TemporaryDirectory() as name:
        broker = Path(name)
        produce(broker / "clicks", "ad", every=5, count=200)
        produce(broker / "visits", "page", every=3, count=330)

        fields = {"clicks": "user INT, ad STRING", "visits": "user INT, page STRING"}
        for topic, schema in fields.items():
            parsed = ["key", f"from_json(string(value), '{schema}') AS body", "timestamp AS ts"]
            events = consume(spark, broker / topic).selectExpr(*parsed).select("key", "body.*", "ts")
            events.withWatermark("ts", "10 seconds").createOrReplaceTempView(topic)

        matches = publish(spark.sql(MATCHED.format(hint="/*+ SHED(exact) */")), broker / "matches")
        query = (
            matches.option("checkpointLocation", str(broker / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        text = ["string(key)", "string(value)"]
        found = sorted(map(tuple, spark.read.parquet(str(broker / "matches")).selectExpr(*text).collect()))

        # The same without streams and without the hint.
        for topic, schema in fields.items():
            parsed = ["key", f"from_json(string(value), '{schema}') AS body", "timestamp AS ts"]
            events = spark.read.parquet(str(broker / topic)).selectExpr(*parsed).select("key", "body.*", "ts")
            events.createOrReplaceTempView(topic)
        expected = sorted(map(tuple, spark.sql(MATCHED.format(hint="")).selectExpr(*text).collect()))
    print(f"{len(found)} messages, for example", *found[:3], sep="\n  ")
    sparkshed.disable(spark)
    return found, expected


if __name__ == "__main__":
    main()
