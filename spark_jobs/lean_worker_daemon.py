"""The same daemon without pandas, half its start, which pyarrow tries to import: for jobs of our functions alone."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

from spark_jobs import worker_daemon
from spark_jobs.prepared_workers import serve


class WithoutPandas(MetaPathFinder):
    """Lets imports fail as they do where pandas is not installed: pyarrow then goes without."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """Find nothing, so that others look. Raises ModuleNotFoundError for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)
        return None


def load() -> None:
    """Import what workers need."""
    sys.meta_path.insert(0, WithoutPandas())
    worker_daemon.load()


if __name__ == "__main__":
    serve(load)
