"""Two sites of which one replays what the other has committed."""

from tests.given.fixtures import replicated

__all__ = ["replicated"]
