"""One provisioned and initialized replication for each module."""

from collections.abc import Iterator

import pytest

from embedded.postgres import Server
from tests.given.fixtures import two_empty_sites
from tests.given.replicated_sites import begin_replicated
from tests.given.replication_steps import ACCOUNT, SteppedReplication


@pytest.fixture(scope="module")
def stepped(server_with_logins: Server) -> Iterator[SteppedReplication]:
    with two_empty_sites(server_with_logins) as both:
        made = begin_replicated(*both, (ACCOUNT,), "public.account")
        made.initialize()
        stepped = SteppedReplication(made)
        yield stepped
        stepped.close()


@pytest.fixture
def replication(stepped: SteppedReplication) -> SteppedReplication:
    stepped.clear()
    return stepped
