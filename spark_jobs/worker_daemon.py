"""The daemon that Spark's Python workers are forked from: what each of them would import is imported once.

Most of the time goes into pandas, which nobody here asks for: ADBC's DB-API brings it, by way of pyarrow.
"""

import gc

import adbc_driver_postgresql.dbapi
from pyspark.daemon import manager

import spark_jobs.acquire
import spark_jobs.custom
import spark_jobs.decide
import spark_jobs.write

__all__ = ["adbc_driver_postgresql", "manager", "spark_jobs"]

if __name__ == "__main__":
    gc.freeze()  # workers collect garbage after every task, and need not look at what was imported
    manager()
