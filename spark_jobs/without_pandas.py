"""pyarrow imports pandas where it is installed, which takes longer than carrying some thousand rows; it need not."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class WithoutPandas(MetaPathFinder):
    """Lets imports fail as they do where pandas is not installed: pyarrow then goes without."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """Find nothing, so that others look. Raises ModuleNotFoundError for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)
        return None


@contextmanager
def without_pandas() -> Iterator[None]:
    """What is imported here does not bring pandas; whoever asks for it later gets it."""
    finder = WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
