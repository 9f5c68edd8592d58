"""Sites of which one publishes to another, and configurations of them."""

from tests.configuration.conftest import parse, problems
from tests.given.fixtures import replicated

__all__ = ["parse", "problems", "replicated"]
