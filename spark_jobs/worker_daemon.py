"""The daemon that Spark's Python workers are forked from: what each of them would import is imported once.

Most of the time goes into pandas, which only somebody else's function may ask for (see `lean_worker_daemon`): ADBC's
DB-API brings it, by way of pyarrow.
"""

import gc

from pyspark.daemon import manager

import spark_jobs.acquire
import spark_jobs.adbc_session
import spark_jobs.custom
import spark_jobs.decide
import spark_jobs.straight
import spark_jobs.write

__all__ = ["serve", "spark_jobs"]


def serve() -> None:
    """Fork workers until Spark ends."""
    gc.freeze()  # workers collect garbage after every task, and need not look at what was imported
    manager()


if __name__ == "__main__":
    serve()
