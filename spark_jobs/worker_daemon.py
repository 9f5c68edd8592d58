"""The daemon that Spark's Python workers are forked from on this machine."""

from spark_jobs.prepared_workers import serve


def load() -> None:
    """Import what workers need."""
    import spark_jobs.worker_libraries  # noqa: F401, PLC0415 - not before it is known who will be the daemon


if __name__ == "__main__":
    serve(load)
