"""What every session of ours is told, whoever has started Spark."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.ansi.enabled": "true",
}
