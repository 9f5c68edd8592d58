"""Two sites of which one replays what the other has committed."""

from tests.configuration.conftest import parse
from tests.given.fixtures import replicated

__all__ = ["parse", "replicated"]
