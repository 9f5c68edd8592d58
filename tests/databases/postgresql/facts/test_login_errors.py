"""A login that fails says what there is to do: a server that answers needs no start."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import psycopg
import pytest

from concord.databases.postgresql.facts.connection import connect
from concord.databases.postgresql.facts.login_errors import could_not_connect
from concord.jobs.site import Credentials
from concord.messages.errors import ConcordError, ConnectionRefused, PrivilegeMissing, SiteUnavailable
from embedded.postgres import Server
from tests.conftest import Database


@pytest.fixture
def login(server: Server, database: Callable[[], Database]) -> Iterator[Credentials]:
    """Of a role and to a database that only this test has."""
    name, user = database().name, f"login_{os.urandom(6).hex()}"
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'opens nothing'")
        superuser.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
        superuser.execute(f"GRANT CONNECT ON DATABASE {name} TO {user}")
    yield Credentials(host=server.host, port=server.port, database=name, user=user, password="opens nothing")
    with psycopg.connect(server.uri(name), autocommit=True) as superuser:
        superuser.execute(f"DROP OWNED BY {user}")
        superuser.execute(f"DROP ROLE {user}")


@contextmanager
def _altered(server: Server, statement: str, back: str) -> Iterator[None]:
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(statement.encode())
        try:
            yield
        finally:
            superuser.execute(back.encode())


@pytest.mark.parametrize(
    ("alter", "back", "kind"),
    [
        ("ROLE {user} CONNECTION LIMIT 1", "ROLE {user} CONNECTION LIMIT -1", SiteUnavailable),
        ("DATABASE {db} CONNECTION LIMIT 1", "DATABASE {db} CONNECTION LIMIT -1", SiteUnavailable),
        ("ROLE {user} NOLOGIN", "ROLE {user} LOGIN", ConnectionRefused),
        ("DATABASE {db} ALLOW_CONNECTIONS false", "DATABASE {db} ALLOW_CONNECTIONS true", ConnectionRefused),
    ],
)
def test_the_remedy_is_the_statement_that_lets_it_in(
    server: Server, login: Credentials, alter: str, back: str, kind: type[ConcordError]
) -> None:
    names = {"user": login.user, "db": login.database}
    quoted = {"user": f'"{login.user}"', "db": f'"{login.database}"'}
    limited = "CONNECTION LIMIT" in alter
    with ExitStack() as stack:
        if limited:
            stack.enter_context(closing(connect(login)))
        stack.enter_context(
            _altered(server, f"ALTER {alter.format(**names)}", f"ALTER {back.format(**names)}")
        )
        with pytest.raises(kind) as failed:
            connect(login)
    assert type(failed.value) is kind
    said = f"ALTER {back.format(**quoted)}".replace("LIMIT -1", "LIMIT …")
    assert said in str(failed.value)
    assert "Start that database" not in str(failed.value)


def test_a_right_to_connect_that_is_missing_is_named(server: Server, login: Credentials) -> None:
    connecting = f"CONNECT ON DATABASE {login.database}"
    with (
        _altered(server, f"REVOKE {connecting} FROM {login.user}", f"GRANT {connecting} TO {login.user}"),
        pytest.raises(PrivilegeMissing, match=f'GRANT CONNECT ON DATABASE "{login.database}"'),
    ):
        connect(login)


@pytest.mark.parametrize(
    "said",
    [
        "sorry, too many clients already",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "number of requested standby connections exceeds max_wal_senders (currently 10)",
        "no more connections allowed (max_client_conn)",
        "query_wait_timeout",
        "the database system is starting up",
        "the database system is shutting down",
        "the database system is not yet accepting connections",
    ],
)
def test_a_server_that_answers_is_not_to_be_started(said: str) -> None:
    login = Credentials(host="a", database="crm", user="reader")
    worded = could_not_connect(
        login, psycopg.OperationalError(f'connection to server at "a", port 1 failed: FATAL:  {said}')
    )
    assert type(worded) is SiteUnavailable
    assert "he next run tries again" in str(worded)
    assert "Start that database" not in str(worded)
