"""A soak of seconds (`make soak MINUTES=…` runs as long as it is told, and restarts the server, too)."""

import pytest

from tests.given.fixtures import MakeNetwork
from tests.given.many_sites import chain
from tests.soak import ITEM, Soak

pytestmark = pytest.mark.spark


def test_writers_and_links_that_die_leave_no_violation(
    network: MakeNetwork, request: pytest.FixtureRequest
) -> None:
    sites = network(chain("oslo", "paris", "quito"), *ITEM)
    soak = Soak(sites, str(request.config.getoption("hypothesis_seed")), processes=False)

    soak.run(6, writers=1)

    assert soak.violations == []
    assert soak.counts["transactions"] > 20
    assert soak.counts["links"]
