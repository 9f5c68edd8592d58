"""An empty, migrated repository, once in SQLite and once in PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from concord.repository.migration import migrate
from concord.repository.opening import open_repository
from embedded.postgres import Server
from tests.given.releases import release_of

#: Makes the URL of a database that does not exist yet (SQLite) or is empty (PostgreSQL).
NewUrl = Callable[[], str]


@pytest.fixture(scope="session")
def repository_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("repository") / "server"
    settings = {"fsync": "off"}  # no test crashes this one
    with Server.create(directory, version=release_of("repository"), settings=settings) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> NewUrl:
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / uuid4().hex}.db"
    server: Server = request.getfixturevalue("repository_server")

    def new_database() -> str:
        name = f"repository_{uuid4().hex}"
        server.create_database(name)
        return server.uri(name)

    return new_database


@pytest.fixture
def url(new_url: NewUrl) -> str:
    return new_url()


@pytest.fixture
def repository(url: str) -> Engine:
    engine = open_repository(url)
    migrate(engine)
    return engine
