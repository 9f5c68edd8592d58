"""A publisher whose triggers capture."""

from tests.given.fixtures import replicated

__all__ = ["replicated"]
