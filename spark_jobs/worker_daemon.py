"""The process that Spark forks its Python workers from: it has imported their modules, once.

Idle workers end after a minute. Without this the next job would import all of it again, which takes longer than
carrying some thousand rows (docs/benchmarks.md).
"""

import gc

import pyspark.daemon

import spark_jobs.adbc_connection
import spark_jobs.steps.acquire
import spark_jobs.steps.custom
import spark_jobs.steps.initialized_rows
import spark_jobs.steps.stage
import spark_jobs.steps.straight
from concord.databases.registry import import_relays

__all__ = ["pyspark", "spark_jobs"]

import_relays()

if __name__ == "__main__":
    gc.freeze()  # workers collect garbage after every task, and need not look at what was imported
    pyspark.daemon.manager()
