"""Two databases with an application's tables, made sites as a person makes them: `prepare`, then commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql

from concord.orchestration.leases import owners
from embedded.connect_server import ConnectServer
from embedded.postgres import Server
from tests.conftest import MakeDatabase
from tests.given.airflow_pair import terminal
from tests.given.prepared_sites import OWNER, connections, owned, prepared, run_script
from tests.given.typed_commands import Terminal
from tests.link.applications import project_tracker
from tests.link.applications.catalogue import Table, tables
from tests.link.applications.random_rows import RandomRows
from tests.link.applications.users import Users

__all__ = ["terminal"]

CLERK = "clerk"
NAME = "london_capetown"
SITES = ("london", "capetown")
HERE = Path(__file__).parent


class Counter(NamedTuple):
    """A column that a trigger keeps: how many rows of another table refer to the row."""

    of: str
    counts: str
    by: str
    difference: str  #: the query for each row's key, and by how much its counter is wrong
    resolver: str


@dataclass(frozen=True)
class Application:
    """The statements that make its tables, and how many rows each gets."""

    ddl: str
    rows: int
    #: The statement that inserts a row, of tables that a function of the application fills.
    inserts: Mapping[str, str] = field(default_factory=dict)
    counter: Counter | None = None


APPLICATIONS = {
    "music_shop": Application((HERE / "music_shop.sql").read_text(), 200),
    "trading_company": Application((HERE / "trading_company.sql").read_text(), 120),
    "project_tracker": Application(
        project_tracker.statements(),
        40,
        inserts={"wiki.page": "SELECT wiki.write_page(%(space)s, %(title)s, 'first') AS id"},
        counter=Counter(
            "tracker.issue",
            "tracker.comment",
            "issue",
            "SELECT i.id, i.comment_count - count(c.id) FROM tracker.issue i LEFT JOIN tracker.comment c"
            " ON c.issue = i.id GROUP BY i.id ORDER BY i.id",
            "additive(comment_count)",
        ),
    ),
}


@dataclass
class Installed:
    """Two sites of an application, with sessions of users and superusers, and the terminal of whoever runs Concord."""

    application: Application
    tables: dict[str, Table]
    users: dict[str, Users]
    superusers: dict[str, psycopg.Connection[Any]]
    terminal: Terminal

    @property
    def london(self) -> Users:
        return self.users["london"]

    @property
    def capetown(self) -> Users:
        return self.users["capetown"]

    def concord(self, *words: str) -> dict[str, Any]:
        """The document that the command shows; it exits with 0."""
        answer = self.terminal(*words, "--json")
        assert answer.status == 0, answer.err
        document: dict[str, Any] = json.loads(answer.out[answer.out.index("{\n") :])
        return document


MakeInstalled = Callable[[Application], Installed]


@pytest.fixture
def install(
    connect: ConnectServer,
    server: Server,
    database: MakeDatabase,
    airflow_home: Path,
    tmp_path: Path,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeInstalled]:
    """Call it once, with an application: London has rows, Cape Town none, and Concord is not yet there."""
    with ExitStack() as ends:

        def make(application: Application) -> Installed:
            names = {site: database().name for site in SITES}
            ends.enter_context(owned(server, list(names.values()), _made(application), [CLERK]))
            superusers = {
                site: psycopg.connect(server.uri(name), autocommit=True) for site, name in names.items()
            }
            sessions = {
                site: psycopg.connect(server.uri(name), autocommit=True) for site, name in names.items()
            }
            for each in (*superusers.values(), *sessions.values()):
                ends.callback(each.close)
            for session in sessions.values():
                session.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(CLERK)))
            made = tables(superusers["london"])
            rows = RandomRows(made, seed=44)
            users = {site: Users(each, rows, application.inserts) for site, each in sessions.items()}
            for table in made.values():
                users["london"].insert_many(table, application.rows // 4)
                users["london"].insert_many(table, application.rows - application.rows // 4)
            folder = tmp_path / "own"
            prepared(folder, server, list(names.values()), list(made))
            for site, name in names.items():
                run_script(folder, site, server, name)
            _configure(folder / "concord.yaml", application)
            _read_environment(folder, connect, monkeypatch)
            return Installed(application, made, users, superusers, terminal)

        yield make


def _made(application: Application) -> str:
    """The tables of an ordinary owner, and the rights of the users."""
    return f"""
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "{OWNER}"', current_database()); END $$;
GRANT USAGE, CREATE ON SCHEMA public TO "{OWNER}";
SET ROLE "{OWNER}";
{application.ddl};
DO $$
DECLARE schema regnamespace;
BEGIN
  FOR schema IN SELECT oid FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)' LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO {CLERK}', schema);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO {CLERK}', schema);
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO {CLERK}', schema);
  END LOOP;
END $$"""


def _configure(path: Path, application: Application) -> None:
    """Have both sites' numbers of a counter added up."""
    if application.counter is not None:
        text, entry = path.read_text(), f"      - table: {json.dumps(application.counter.of)}\n"
        assert entry in text
        path.write_text(text.replace(entry, f"{entry}        resolvers: [{application.counter.resolver}]\n"))


def _read_environment(folder: Path, spark: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell does it by `. own/environment`; with the tests' Spark, and a repository of the test's own."""
    for name, connection in connections(folder).items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(connection))
    repository = {"conn_type": "sqlite", "host": str(folder / "repository.db")}
    monkeypatch.setenv("AIRFLOW_CONN_CONCORD_REPOSITORY", json.dumps(repository))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", spark.connection)
    monkeypatch.setenv("CONCORD_CONFIG", str(folder / "concord.yaml"))
    monkeypatch.setenv(f"AIRFLOW_VAR_{owners.VARIABLE.upper()}", "tests")
