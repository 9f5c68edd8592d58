"""The same daemon without pandas, half its start: for jobs of our functions alone."""

import sys

from spark_jobs import worker_daemon
from spark_jobs.prepared_workers import serve
from spark_jobs.without_pandas import WithoutPandas


def load() -> None:
    """Import what workers need."""
    sys.meta_path.insert(0, WithoutPandas())
    worker_daemon.load()


if __name__ == "__main__":
    serve(load)
