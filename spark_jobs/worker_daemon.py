"""The process that Spark forks its Python workers from: it has imported their modules, once.

Idle workers end after a minute. Without this the next job would import all of it again, which takes longer than
carrying some thousand rows (docs/benchmarks.md).
"""

import gc

import pyspark.daemon

import concord.databases.postgresql.write.relay
import spark_jobs.acquire
import spark_jobs.adbc_session
import spark_jobs.custom
import spark_jobs.decide
import spark_jobs.straight
import spark_jobs.write

__all__ = ["concord", "pyspark", "spark_jobs"]

if __name__ == "__main__":
    gc.freeze()  # workers collect garbage after every task, and need not look at what was imported
    pyspark.daemon.manager()
