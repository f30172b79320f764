"""Read JSON messages from a broker, join them, and write JSON messages back.

Files stand in for the broker, so that this runs anywhere. They have the columns of Spark's Kafka source: key
and value as binary, and the timestamp. Two lines change for Kafka, those below "For Kafka".

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
TOPICS = {"clicks": "user INT, ad STRING", "visits": "user INT, page STRING"}

# A Kafka sink takes the columns key and value.
LED_TO = """
SELECT {hint} c.key,
       to_json(struct(c.ad, v.page, unix_seconds(v.ts) - unix_seconds(c.ts) AS seconds)) AS value
FROM clicks c JOIN visits v
  ON c.user = v.user AND v.ts BETWEEN c.ts AND c.ts + INTERVAL 30 SECONDS
"""


def produce(topic: Path, field: str, every: int, count: int) -> None:
    """Put messages such as {"user": 3, "ad": "ad 7"} on a topic."""
    values = [{"user": n * 7 % 20, field: f"{field} {n % 9}"} for n in range(count)]
    times = [START + timedelta(seconds=every * n) for n in range(count)]
    messages = {
        "key": [str(value["user"]).encode() for value in values],
        "value": [json.dumps(value).encode() for value in values],
        "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
    }
    topic.mkdir()
    pq.write_table(pa.table(messages), topic / "0.parquet")


def consume(spark: SparkSession, topic: Path) -> DataFrame:
    # For Kafka: spark.readStream.format("kafka").option("kafka.bootstrap.servers", "host:9092")
    #            .option("subscribe", topic.name).load()
    return spark.readStream.schema(MESSAGE).parquet(str(topic))


def publish(messages: DataFrame, topic: Path) -> DataStreamWriter:
    # For Kafka: messages.writeStream.format("kafka").option("kafka.bootstrap.servers", "host:9092")
    #            .option("topic", topic.name)
    return messages.writeStream.format("parquet").option("path", str(topic))


def events(messages: DataFrame, fields: str) -> DataFrame:
    """The fields of the JSON values as columns, beside the key and the time."""
    body = f"from_json(string(value), '{fields}') AS body"
    return messages.selectExpr("key", body, "timestamp AS ts").select("key", "body.*", "ts")


def texts(messages: DataFrame) -> list[tuple[str, str]]:
    return sorted(map(tuple, messages.selectExpr("string(key)", "string(value)").collect()))


def main() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Run the pipeline; returns the messages that it wrote, and those that plain Spark finds in the files."""
    spark = sparkshed.enable(SparkSession.builder.master("local[2]").getOrCreate())
    with tempfile.TemporaryDirectory() as name:
        broker = Path(name)
        produce(broker / "clicks", "ad", every=5, count=400)
        produce(broker / "visits", "page", every=3, count=660)

        for topic, fields in TOPICS.items():
            stream = events(consume(spark, broker / topic), fields)
            stream.withWatermark("ts", "10 seconds").createOrReplaceTempView(topic)
        query = (
            publish(spark.sql(LED_TO.format(hint="/*+ SHED(exact) */")), broker / "led_to")
            .option("checkpointLocation", str(broker / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        found = texts(spark.read.parquet(str(broker / "led_to")))

        for topic, fields in TOPICS.items():
            events(spark.read.parquet(str(broker / topic)), fields).createOrReplaceTempView(topic)
        expected = texts(spark.sql(LED_TO.format(hint="")))
    print(f"{len(found)} messages, for example", *found[:3], sep="\n  ")
    sparkshed.disable(spark)
    return found, expected


if __name__ == "__main__":
    main()
