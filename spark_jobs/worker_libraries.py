"""What a worker would import for its first task: imported once by what all workers are forked from.

Most of the time goes into pandas, which only somebody else's function may ask for (see `lean_worker_daemon`): ADBC's
DB-API brings it, by way of pyarrow.
"""

import pyspark.daemon

import concord.databases.postgresql.relay
import spark_jobs.acquire
import spark_jobs.adbc_session
import spark_jobs.custom
import spark_jobs.decide
import spark_jobs.straight
import spark_jobs.write

__all__ = ["concord", "pyspark", "spark_jobs"]
