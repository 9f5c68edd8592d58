"""Three databases with the same rows: London, Cape Town as Concord writes it, Cape Town as written by hand."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from pydantic import SecretStr

from benchmarks import bookings
from concord.site import Credentials, SiteAccess
from demo import workspace
from embedded.postgres import Server

READER, APPLIER = "concord_reader", "concord_applier"
LONDON, CAPETOWN, BY_HAND = "london", "capetown", "by_hand"

#: As the limits in docs/benchmarks.md were measured. Vacuum runs between the measurements, not during one.
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}


@dataclass(frozen=True)
class Database:
    """One database, reached as the superuser, or as one of Concord's two logins."""

    name: str
    server: Server
    password: str = field(repr=False)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.uri(self.name), autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def row(self, query: str) -> tuple[Any, ...]:
        with self.connect() as connection:
            (found,) = connection.execute(query.encode()).fetchall()
        return tuple(found)

    def credentials(self, user: str) -> Credentials:
        password = self.server.password if user == self.server.superuser else self.password
        return Credentials(
            host=self.server.host,
            port=self.server.port,
            database=self.name,
            user=user,
            password=SecretStr(password),
        )

    @property
    def access(self) -> SiteAccess:
        return SiteAccess(name=self.name, reader=self.credentials(READER), applier=self.credentials(APPLIER))


@dataclass(frozen=True)
class Databases:
    """London has a server of its own; both Cape Towns share the other one."""

    london: Database
    capetown: Database
    by_hand: Database

    @property
    def all(self) -> tuple[Database, ...]:
        return (self.london, self.capetown, self.by_hand)

    def everywhere(self, *statements: str) -> None:
        """Run the same statements in every database, at once."""
        _at_once([lambda each=each: each.run(*statements) for each in self.all])  # type: ignore[misc]


@contextmanager
def running(directory: Path) -> Iterator[Databases]:
    """Two servers below `directory` with three empty databases; removed when the block ends."""
    with Server.create(directory / LONDON, settings=SETTINGS) as here:
        with Server.create(directory / CAPETOWN, settings=SETTINGS) as there:
            passwords = {server: secrets.token_urlsafe(24) for server in (here, there)}
            for server, password in passwords.items():
                _create_logins(server, password)
            yield Databases(
                Database(LONDON, here, passwords[here]),
                Database(CAPETOWN, there, passwords[there]),
                Database(BY_HAND, there, passwords[there]),
            )
            there.remove()
        here.remove()


@contextmanager
def in_workspace(directory: Path) -> Iterator[Databases]:
    """The same in a directory that nobody else works in, and of which nothing is left, however the block ends."""
    with workspace.workspace(directory):
        try:
            with running(directory) as made:
                yield made
        finally:
            workspace.clear(directory)


@contextmanager
def running_alone(directory: Path) -> Iterator[Database]:
    """One server below `directory` with one empty database; removed when the block ends."""
    with Server.create(directory / LONDON, settings=SETTINGS) as server:
        password = secrets.token_urlsafe(24)
        _create_logins(server, password)
        server.create_database(LONDON)
        yield Database(LONDON, server, password)
        server.remove()


def fill(databases: Databases, rows: int) -> None:
    """Begin anew: the table with this many rows in all three databases, and nothing of Concord."""
    made = bookings.creation(rows)
    london, capetown, by_hand = databases.all
    for each in databases.all:
        each.server.drop_database(each.name)
    for each in (london, capetown):
        each.server.create_database(each.name)
    _at_once([lambda: london.run(*made), lambda: capetown.run(*made)])
    # A copy of the files is the same table, page by page.
    Database("postgres", by_hand.server, by_hand.password).run(
        f"CREATE DATABASE {BY_HAND} TEMPLATE {CAPETOWN} STRATEGY FILE_COPY"
    )


def _at_once(actions: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(actions)) as pool:
        for future in [pool.submit(action) for action in actions]:
            future.result()


def _create_logins(server: Server, password: str) -> None:
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        for login in (READER, APPLIER):
            create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            superuser.execute(create.format(sql.Identifier(login), sql.Literal(password)))
