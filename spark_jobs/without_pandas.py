"""pyarrow imports pandas where it is installed, which takes longer than carrying some thousand rows; it need not."""

from collections.abc import Sequence
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
