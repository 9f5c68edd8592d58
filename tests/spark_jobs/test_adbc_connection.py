"""Sessions of executors: each is its own, and what ADBC reads of a database is read once for each login."""

from collections.abc import Callable, Iterator
from time import monotonic, sleep

import adbc_driver_postgresql
import psycopg
import pytest
from adbc_driver_manager import OperationalError

from embedded.postgres import Server
from spark_jobs import adbc_connection
from spark_jobs.adbc_connection import connect
from tests.conftest import Database

#: Sessions of clients but one's own; a vacuum of the server's is none.
OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)
#: A server ends a session some time after its client has left.
SECONDS = 10


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    adbc_connection._database.cache_clear()
    yield
    adbc_connection._database.cache_clear()


def backend(login: str) -> int:
    with connect(login) as session, session.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (found,) = cursor.fetchone()
    return int(found)


def test_each_session_is_its_own_and_none_outlives_its_block(database: Callable[[], Database]) -> None:
    login = database().uri
    with connect(login) as outer, outer.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() != (backend(login),)
    assert others_left(login) == 0


def others_left(login: str) -> int:
    until = monotonic() + SECONDS
    with psycopg.connect(login, autocommit=True) as watching:
        while (left := watching.execute(OTHERS).fetchone()) != (0,) and monotonic() < until:
            sleep(0.05)
    assert left is not None
    return int(left[0])


def test_a_database_is_read_once_for_each_login(
    database: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    opened = adbc_driver_postgresql.connect
    monkeypatch.setattr(adbc_driver_postgresql, "connect", lambda login: read.append(login) or opened(login))
    one, other = database().uri, database().uri
    for login in (one, one, other, one):
        backend(login)
    assert read == [one, other]


def test_a_database_that_was_away_is_tried_again(server: Server, database: Callable[[], Database]) -> None:
    name = database().name
    server.drop_database(name)
    with pytest.raises(OperationalError):
        connect(server.uri(name))
    server.create_database(name)
    assert backend(server.uri(name))
