"""London on a server of its own, which a page crashes and starts again; Cape Town and New York on another one."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from embedded.postgres import Server
from tests.conftest import Database
from tests.given.airflow_pair import Pair, Site, connect_airflow, make_logins
from tests.given.releases import release_of
from tests.given.typed_commands import Terminal
from tests.given.typed_page import Page


@pytest.fixture(scope="module")
def london_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"wal_level": "logical", "max_slot_wal_keep_size": "1GB"}
    folder = tmp_path_factory.mktemp("london") / "server"
    with Server.create(folder, version=release_of("london"), settings=settings) as server:
        make_logins(server)
        yield server


@pytest.fixture
def failing_london(
    unprovisioned: Pair,
    london_server: Server,
    server: Server,
    database: Callable[[], Database],
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Page]:
    """Empty sites, and a page that is played on them."""
    made = {"capetown": database(), "newyork": database()}
    sites = {name: Site(each.uri) for name, each in made.items()}
    for name, each in made.items():
        connect_airflow(monkeypatch, name, server, each.name)
    number = len(_databases(london_server))
    with psycopg.connect(london_server.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE DATABASE london_{number}".encode())

    def returns(name: str = "london") -> None:
        london_server.start()
        connect_airflow(monkeypatch, name, london_server, f"london_{number}")
        sites[name] = Site(london_server.uri(f"london_{number}"))

    returns()
    yield Page(
        unprovisioned.path, sites, terminal, lambda _: london_server.stop("immediate"), returns, exact=False
    )
    london_server.start()
    for site in sites.values():
        site.drop_slots()


def _databases(server: Server) -> list[tuple[str]]:
    with psycopg.connect(server.uri("postgres")) as superuser:
        return superuser.execute("SELECT datname FROM pg_database WHERE datname LIKE 'london%'").fetchall()
