"""The process that Spark forks its Python workers from: it has imported their modules, once.

Idle workers end after a minute. Without this the next job would import all of it again, which takes longer than
carrying some thousand rows (docs/benchmarks.md).
"""

import gc
import sys
from zipimport import zipimporter

import pyspark.daemon
import pyspark.worker

import spark_jobs.adbc_connection
import spark_jobs.steps.acquire
import spark_jobs.steps.custom
import spark_jobs.steps.initialized_rows
import spark_jobs.steps.stage
import spark_jobs.steps.straight
from concord.databases.registry import import_relays

__all__ = ["pyspark", "spark_jobs"]

import_relays()


def forget_archives() -> None:
    """Of archives Python keeps one finder a folder. Each new worker has all finders look again, and each of these
    would read the whole list of pyspark's archive. An import that needs one has it made anew, from the list as it was.
    """
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    forget_archives()
    gc.freeze()  # workers collect garbage after every task, and need not look at what was imported
    pyspark.daemon.manager()
