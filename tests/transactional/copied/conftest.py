"""Sites of which one replays what another has committed."""

from tests.given.fixtures import replicated

__all__ = ["replicated"]
