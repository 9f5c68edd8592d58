"""Sites of which one replays what another has committed."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from embedded.postgres import Server
from tests.configuration.conftest import parse, problems
from tests.conftest import Database
from tests.given.fixtures import replicated, site_on
from tests.given.site import Site

__all__ = ["make_sites", "parse", "problems", "replicated"]

NAMES = ("london", "capetown", "oslo", "quito")


@pytest.fixture
def make_sites(
    server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[Callable[[int], Sequence[Site]]]:
    """Call it with a number of sites, up to four, each a database without tables."""
    made: list[Site] = []

    def make(many: int) -> Sequence[Site]:
        made.extend(site_on(server_with_logins, name, database().name) for name in NAMES[:many])
        return made

    yield make
    for site in made:
        site.drop_slots()
        site.connection.close()
