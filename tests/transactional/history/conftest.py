"""Sites of which one replays what another has committed."""

from tests.configuration.conftest import parse, problems
from tests.given.airflow_pair import maker, terminal, unprovisioned
from tests.given.fixtures import replicated

__all__ = ["maker", "parse", "problems", "replicated", "terminal", "unprovisioned"]
