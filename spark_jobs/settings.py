"""What Spark is told by whoever starts it, or asks it for a session."""

#: Of every session of ours.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.ansi.enabled": "true",
}
#: Workers on this machine are forked from a process that has imported our code; elsewhere the code comes later.
#: With the others Spark itself makes a secret for each application on one machine, and keeps it in the driver's memory:
#: no other process of the machine is answered on the driver's ports. On a cluster its own settings say the same (S5).
ON_THIS_MACHINE = {
    "spark.python.daemon.module": "spark_jobs.worker_daemon",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
#: By this variable pyspark's functions know that they are asked for a Connect session. Classic Spark refuses to start
#: under it.
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


def is_local(master: str) -> bool:
    """Whether the executors run inside the driver."""
    return master.startswith("local")
