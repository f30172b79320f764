"""Everything that talks to Spark: sessions, schemas, statistics, execution."""
