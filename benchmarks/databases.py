"""Databases with the same rows: pairs of a London and a Cape Town, and a Cape Town that is written by hand."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from pydantic import SecretStr

from benchmarks import bookings
from concord.jobs.site import Credentials, SiteAccess
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

    @property
    def version(self) -> str:
        """Of the server, as in `16.14`."""
        (found,) = self.row("SELECT split_part(version(), ' ', 2)")
        return str(found)

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
class Pair:
    """Two databases, each on a server of its own, that are to be kept equal."""

    london: Database
    capetown: Database

    @property
    def all(self) -> tuple[Database, ...]:
        return (self.london, self.capetown)

    def everywhere(self, *statements: str) -> None:
        """Run the same statements in every database, at once."""
        _at_once([lambda each=each: each.run(*statements) for each in self.all])  # type: ignore[misc]

    def another(self, suffix: str) -> "Pair":
        """Two databases beside these, on the same servers."""
        london, capetown = (
            replace(each, name=f"{each.name}_{suffix}") for each in (self.london, self.capetown)
        )
        return Pair(london, capetown)


@dataclass(frozen=True)
class Databases(Pair):
    """A pair of Concord's sites, and a second Cape Town on the server of the first."""

    by_hand: Database

    @property
    def all(self) -> tuple[Database, ...]:
        return (self.london, self.capetown, self.by_hand)


@dataclass(frozen=True)
class ServerKind:
    """Which servers: of which version, with whose programs (the wheel's where none are named), and how set up."""

    version: int = 16
    binaries: Path | None = None
    settings: Mapping[str, str] = field(default_factory=lambda: SETTINGS)

    def create(self, directory: Path) -> Server:
        return Server.create(directory, version=self.version, settings=self.settings, binaries=self.binaries)


@contextmanager
def running_pair(directory: Path, kind: ServerKind) -> Iterator[Pair]:
    """Two servers below `directory` and the names of two databases on them; removed when the block ends."""
    with kind.create(directory / LONDON) as here:
        with kind.create(directory / CAPETOWN) as there:
            passwords = {server: secrets.token_urlsafe(24) for server in (here, there)}
            for server, password in passwords.items():
                _create_logins(server, password)
            yield Pair(Database(LONDON, here, passwords[here]), Database(CAPETOWN, there, passwords[there]))
            there.remove()
        here.remove()


@contextmanager
def running(directory: Path) -> Iterator[Databases]:
    """Two servers below `directory` with three databases to be made; removed when the block ends."""
    with running_pair(directory, ServerKind()) as pair:
        yield Databases(pair.london, pair.capetown, replace(pair.capetown, name=BY_HAND))


@contextmanager
def in_workspace(directory: Path) -> Iterator[Databases]:
    """The same in a directory that nobody else works in, and of which nothing is left, however the block ends."""
    with _alone_in(directory), running(directory) as made:
        yield made


@contextmanager
def pair_in_workspace(directory: Path, kind: ServerKind) -> Iterator[Pair]:
    """`running_pair` in such a directory."""
    with _alone_in(directory), running_pair(directory, kind) as made:
        yield made


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    with workspace.workspace(directory):
        try:
            yield
        finally:
            workspace.clear(directory)


@contextmanager
def alone_in_workspace(directory: Path, settings: Mapping[str, str] = SETTINGS) -> Iterator[Database]:
    """`running_alone` in such a directory."""
    with _alone_in(directory), running_alone(directory, settings) as made:
        yield made


@contextmanager
def running_alone(directory: Path, settings: Mapping[str, str] = SETTINGS) -> Iterator[Database]:
    """One server below `directory` with one empty database; removed when the block ends."""
    with Server.create(directory / LONDON, settings=settings) as server:
        password = secrets.token_urlsafe(24)
        _create_logins(server, password)
        server.create_database(LONDON)
        yield Database(LONDON, server, password)
        server.remove()


def fill(databases: Databases, rows: int) -> None:
    """Begin anew: the table with this many rows in all three databases, and nothing of Concord."""
    fill_pair(databases, rows)
    _begin_by_hand(databases.capetown, databases)


def copy_all(pair: Pair, to: Databases) -> None:
    """Begin all three anew, with the files of a pair."""
    copy_pair(pair, Pair(to.london, to.capetown))
    _begin_by_hand(pair.capetown, to)


def _begin_by_hand(capetown: Database, databases: Databases) -> None:
    databases.by_hand.server.drop_database(databases.by_hand.name)
    copy(capetown, databases.by_hand)


def fill_pair(pair: Pair, rows: int) -> None:
    """Begin anew: the table with this many rows in London and Cape Town."""
    made = bookings.creation(rows)
    for each in (pair.london, pair.capetown):
        each.server.drop_database(each.name)
        each.server.create_database(each.name)
    _at_once([lambda: pair.london.run(*made), lambda: pair.capetown.run(*made)])


def copy_pair(pair: Pair, to: Pair) -> None:
    """Begin the second anew, with the files of the first."""
    for database, other in zip(pair.all, to.all, strict=True):
        other.server.drop_database(other.name)
        copy(database, other)


def copy(database: Database, to: Database) -> None:
    """Make a database with the same tables, page by page: a copy of the files. Nobody may be connected to the first."""
    everything = replace(database, name="postgres")
    everything.run(f"CREATE DATABASE {to.name} TEMPLATE {database.name} STRATEGY FILE_COPY")


def _at_once(actions: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(actions)) as pool:
        for future in [pool.submit(action) for action in actions]:
            future.result()


def _create_logins(server: Server, password: str) -> None:
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        for login in (READER, APPLIER):
            create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            superuser.execute(create.format(sql.Identifier(login), sql.Literal(password)))
