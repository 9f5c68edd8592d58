"""Sites of which one replays what another has committed."""

from tests.configuration.conftest import parse, problems
from tests.given.fixtures import each_capture, replicated

__all__ = ["each_capture", "parse", "problems", "replicated"]
