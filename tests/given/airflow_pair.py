"""Two provisioned sites with one table, their Airflow connections, and the DAGs of their synchronization."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dagrun import DagRun
from psycopg import sql
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration, load
from concord.databases import provisioning
from concord.orchestration.leases import owners
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks.initialization import initialize
from concord.orchestration.tasks.jobs import installations
from embedded.connect_server import ConnectServer
from embedded.postgres import Server
from tests.conftest import PROJECT, Database, MakeDatabase
from tests.given import slots
from tests.given.quick_airflow import dags_known
from tests.given.template_databases import Provisioned, TemplateDatabases
from tests.given.typed_commands import Terminal

#: The Spark connection of those that are about what is submitted: each link then starts a Spark of its own.
SUBMITTED = '{"conn_type": "spark", "host": "local[1]"}'
#: No encoding of it is itself, and nothing else looks like it.
CANARY = "canary/5ecret ümlaut%+"
SITES = ("london", "capetown")
LOGINS = {
    "reader": "orchestration_reader",
    "applier": "orchestration_applier",
    "log_reader": "orchestration_log_reader",
}
NAME = "london_capetown"

CONFIGURATION = """\
sites:
  london: {connection: london, reader: london_reader, applier: london_applier}
  capetown: {connection: capetown, reader: capetown_reader, applier: capetown_applier}
replication_sets:
  flights:
    tables:
      - table: public.flights
      - table: public.airlines
synchronizations:
  london_capetown: {replication_set: flights, source: london, target: capetown, schedule: "*/5 * * * *"}
"""
TABLES = """
CREATE TABLE public.airlines (carrier text PRIMARY KEY, name text);
CREATE TABLE public.flights (flight integer PRIMARY KEY, delay integer, note text);
INSERT INTO public.airlines VALUES ('UA', 'United');
INSERT INTO public.flights SELECT n, 0, 'as loaded' FROM generate_series(1, 20) n;
"""


def connection_json(server: Server, database: str, login: str, password: str) -> str:
    """An Airflow connection as AIRFLOW_CONN_… holds it."""
    parts = {"conn_type": "postgres", "host": server.host, "port": server.port, "schema": database}
    return json.dumps({**parts, "login": login, "password": password, "extra": {"dialect": "postgresql"}})


def make_logins(server: Server) -> None:
    """The logins of all sites of that server, each with a password that looks like nothing else."""
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        for role, login in LOGINS.items():
            right = sql.SQL("REPLICATION" if role == "log_reader" else "")
            made = sql.SQL("CREATE ROLE {} LOGIN {} PASSWORD {}")
            superuser.execute(made.format(sql.Identifier(login), right, sql.Literal(CANARY)))


def connect_airflow(monkeypatch: pytest.MonkeyPatch, site: str, server: Server, database: str) -> None:
    """Airflow's connections to a site: its owner's, and one for each login."""
    for role, login in {"": server.superuser, **LOGINS}.items():
        variable = f"AIRFLOW_CONN_{site.upper()}" + (f"_{role.upper()}" if role else "")
        password = CANARY if role else server.password
        monkeypatch.setenv(variable, connection_json(server, database, login, password))


@dataclass
class Site:
    """One site as its users see it."""

    uri: str

    def drop_slots(self) -> None:
        slots.drop(self.run)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@dataclass
class Pair:
    """Two sites, their configuration, and what Airflow and the repository know of them."""

    london: Site
    capetown: Site
    configuration: Configuration
    path: Path
    #: The configuration of which Airflow's database has the DAGs.
    known: str = field(default="", init=False)

    @property
    def repository(self) -> Engine:
        return repository()

    def run(self, dag_id: str = f"synchronize__{NAME}", conf: dict[str, Any] | None = None) -> DagRun:
        """One manual run without a logical date. A fresh DAG each time: conf sticks to the object."""
        text = self.path.read_text()
        with dags_known(already=text == self.known):
            run = dag_named(dag_id).test(logical_date=None, run_conf=conf)
        self.known = text
        return run


def dag_named(dag_id: str) -> Any:
    bag = DagBag(str(PROJECT / "dags"))
    assert bag.import_errors == {}
    return bag.dags[dag_id]


def states(run: DagRun) -> dict[str, str]:
    """The state of every task of a run."""
    return {each.task_id: str(each.state) for each in run.get_task_instances()}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Types `python -m concord` without the seconds that a process of its own needs to import Airflow."""
    return Terminal(monkeypatch, capsys)


@dataclass
class PairMaker:
    """Makes pairs of two databases, each known to Airflow by its connections until the next one is made."""

    spark_connection: str
    folder: Path

    def connect(self, databases: Mapping[str, Database], monkeypatch: pytest.MonkeyPatch) -> Pair:
        for name, database in databases.items():
            connect_airflow(monkeypatch, name, database.server, database.name)
        path = self.folder / "concord.yaml"
        path.write_text(CONFIGURATION)
        monkeypatch.setenv("CONCORD_CONFIG", str(path))
        monkeypatch.setenv(f"AIRFLOW_VAR_{owners.VARIABLE.upper()}", "tests")
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", self.spark_connection)
        monkeypatch.setenv(
            "AIRFLOW_CONN_CONCORD_REPOSITORY",
            json.dumps({"conn_type": "sqlite", "host": str(self.folder / "repository.db")}),
        )
        return Pair(*(Site(databases[name].uri) for name in SITES), load(path), path)

    def provision(self, empty: MakeDatabase, monkeypatch: pytest.MonkeyPatch) -> Provisioned:
        """Two provisioned and initialized databases, and the path of the repository that knows it."""
        databases = _with_tables(empty)
        pair = self.connect(databases, monkeypatch)
        provisioning.provision(installations(pair.configuration))
        initialize(pair.configuration, NAME, "test")
        return Provisioned(databases, self.folder / "repository.db")


def _with_tables(empty: MakeDatabase) -> dict[str, Database]:
    databases = {name: empty(site=name) for name in SITES}
    for database in databases.values():
        Site(database.uri).run(TABLES)
    return databases


@pytest.fixture
def maker(connect: ConnectServer, airflow_logins: None, airflow_home: Path, tmp_path: Path) -> PairMaker:
    return PairMaker(connect.connection, tmp_path)


@pytest.fixture
def unprovisioned(maker: PairMaker, database: MakeDatabase, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return maker.connect(_with_tables(database), monkeypatch)


@pytest.fixture
def pair(
    maker: PairMaker,
    templates: TemplateDatabases,
    database: MakeDatabase,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Pair:
    """The same, provisioned and initialized."""

    def provision(empty: MakeDatabase) -> Provisioned:
        elsewhere = replace(maker, folder=tmp_path_factory.mktemp("template"))
        with pytest.MonkeyPatch.context() as environment:
            return elsewhere.provision(empty, environment)

    databases, repository_file = templates.copied("airflow pair", provision, database)
    with (
        closing(sqlite3.connect(repository_file)) as original,
        closing(sqlite3.connect(maker.folder / "repository.db")) as copy,
    ):
        original.backup(copy)
    return maker.connect(databases, monkeypatch)
