"""One provisioned and initialized replication for each module."""

import os
from collections.abc import Iterator

import pytest

from embedded.postgres import Server
from tests.given.fixtures import site_on
from tests.given.replicated_sites import begin_replicated
from tests.given.replication_steps import ACCOUNT, SteppedReplication


@pytest.fixture(scope="module")
def stepped(server_with_logins: Server) -> Iterator[SteppedReplication]:
    names = [f"stepped_{os.urandom(6).hex()}" for _ in range(2)]
    for name in names:
        server_with_logins.create_database(name)
    both = [site_on(server_with_logins, *each) for each in zip(("london", "capetown"), names, strict=True)]
    made = begin_replicated(*both, (ACCOUNT,), "public.account")
    made.initialize()
    yield SteppedReplication(made)
    for site in both:
        site.drop_slots()
        site.connection.close()
        server_with_logins.drop_database(site.database)


@pytest.fixture
def replication(stepped: SteppedReplication) -> Iterator[SteppedReplication]:
    yield stepped
    stepped.clear()
