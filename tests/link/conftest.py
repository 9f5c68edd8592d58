"""A pair of sites on real PostgreSQL, and the one Spark session of the test run."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from embedded.postgres import Server
from spark_jobs import route
from spark_jobs.connect import connected
from spark_jobs.session import start
from tests.conftest import Database
from tests.link import pair as pair_module
from tests.link.installations import Bare
from tests.link.marked import Shops, open_shops
from tests.link.network import Network, Topology, begin_network
from tests.link.pair import Pair, Site, begin, create_logins
from tests.link.snapshots import FLIGHTS, Copies, counts

MakePair = Callable[..., Pair]
MakeNetwork = Callable[..., Network]
MakeShops = Callable[..., Shops]


#: Has the whole link suite run over Spark Connect instead of classic Spark.
OVER_CONNECT = "TESTS_OVER_CONNECT"


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, java: object) -> Iterator[SparkSession]:
    """One session in this process, with the settings of a real transmission."""
    if os.environ.get(OVER_CONNECT):
        with connected(request.getfixturevalue("connect").url) as made:
            yield made()
        return
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
        session = start()
    yield session
    session.stop()


@pytest.fixture
def classic() -> None:
    """For what Connect has not: a tracker of tasks, or a Spark that a test submits itself."""
    if os.environ.get(OVER_CONNECT):
        pytest.skip("asks classic Spark")


@pytest.fixture(scope="session")
def server_with_logins(server: Server) -> Server:
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        create_logins(superuser)
    return server


@pytest.fixture
def carried_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were very many rows: Spark carries what meets nothing as well."""
    monkeypatch.setattr(pair_module, "SPARK_FROM_HERE", 0)


@pytest.fixture(params=["at the target", "by Spark"])
def judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conflicts are judged under the target's locks, or by Spark before anything is locked: with the same end."""
    if request.param == "by Spark":
        monkeypatch.setattr(route, "MOST_UNDER_LOCK", 0)


def site_on(server: Server, name: str, database: str) -> Site:
    return Site(name, server.host, server.port, database, server.superuser, server.password)


@pytest.fixture
def pair(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[MakePair]:
    """Call it with the statements that make both sites' tables; Spark starts only when a link needs it."""
    made: list[Pair] = []

    def make(*ddl: str) -> Pair:
        london, capetown = (
            site_on(server_with_logins, name, database().name) for name in ("london", "capetown")
        )
        made.append(begin(london, capetown, ddl, lambda: request.getfixturevalue("spark")))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.connection.close()


@pytest.fixture
def network(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[MakeNetwork]:
    """Call it with a topology and the statements that make every site's tables."""
    made: list[Network] = []

    def make(topology: Topology, *ddl: str) -> Network:
        def make_site(name: str) -> Site:
            return site_on(server_with_logins, name, database().name)

        made.append(begin_network(topology, make_site, ddl, lambda: request.getfixturevalue("spark")))
        return made[-1]

    yield make
    for each in made:
        for site in each.sites:
            site.connection.close()


@pytest.fixture
def sites(server_with_logins: Server, database: Callable[[], Database]) -> Iterator[Bare]:
    both = Bare(*(site_on(server_with_logins, name, database().name) for name in ("london", "capetown")))
    yield both
    for site in both.sites:
        site.connection.close()


@pytest.fixture
def shops(request: pytest.FixtureRequest, sites: Bare) -> MakeShops:
    """Call it once; Spark starts only when a link needs it."""

    def make(**changed: Any) -> Shops:
        return open_shops(*sites.sites, lambda: request.getfixturevalue("spark"), **changed)

    return make


@pytest.fixture
def copies(
    request: pytest.FixtureRequest, server_with_logins: Server, database: Callable[[], Database]
) -> Iterator[Copies]:
    """London with ten flights; Cape Town empty; nothing provisioned."""
    london, capetown = (site_on(server_with_logins, name, database().name) for name in ("london", "capetown"))
    london.run(*FLIGHTS)
    yield Copies(london, capetown, lambda: request.getfixturevalue("spark"))
    for site in (london, capetown):
        site.connection.close()


@pytest.fixture
def late(copies: Copies) -> Copies:
    """An incremental snapshot `late` of the flights that are more than 50 late, filled."""
    copies.define(
        "late", "incremental", "public.flight", "public.late", columns=("delay",), where="delay > 50"
    )
    copies.provision()
    assert counts(copies.refresh("late")) == (5, 0, 0, 0)
    return copies
