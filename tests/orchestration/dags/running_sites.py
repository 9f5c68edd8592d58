"""Two real sites, the whole Airflow that synchronizes them, and the repository that it fills."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Engine

from concord.configuration.configuration import load
from concord.databases import provisioning
from concord.orchestration.tasks.initialization import initialize
from concord.orchestration.tasks.jobs import installations
from concord.repository import status
from concord.repository.opening import open_repository
from concord.repository.status import RunStatus
from embedded.postgres import Server
from tests.conftest import PROJECT
from tests.given.airflow_pair import CANARY, LOGINS, SITES, TABLES, Site, connection_json
from tests.orchestration.dags.running_airflow import Airflow, airflow


@dataclass
class Scene:
    """The sites, the Airflow that synchronizes them, and the repository that it fills."""

    london: Site
    capetown: Site
    airflow: Airflow
    repository: Engine

    def recorded(self, synchronization: str, kind: str) -> list[RunStatus]:
        """The runs of one kind, oldest first, all with their lease given back."""
        runs = [each for each in status.last_runs(self.repository, synchronization) if each.run_type == kind]
        return sorted(runs, key=lambda run: run.started_at)

    def rows(self, run: RunStatus) -> list[tuple[str, int, int]]:
        """Direction, rows acquired and rows applied of each of its links."""
        found = status.transmissions(self.repository, run.id)
        return [(each.direction, each.acquired, each.applied) for each in found]


Edit = Callable[[Site, Site], None]


@contextmanager
def running_sites(
    server: Server,
    folder: Path,
    configuration: str,
    edit: Edit,
    more: Mapping[str, str] | None = None,
    team: str = "",
) -> Iterator[Scene]:
    """Initialized, edited at both sites, and only then handed to Airflow, with `more` connections by their ids.

    `team` is a DAG file of a team's own.
    """
    path, dags = folder / "concord.yaml", folder / "dags"
    path.write_text(configuration)
    dags.mkdir()
    shutil.copy(PROJECT / "dags" / "concord_dags.py", dags)
    (dags / "of_a_team.py").write_text(team)
    databases = {name: f"running_{os.urandom(6).hex()}" for name in SITES}
    of_airflow = f"airflow_{os.urandom(6).hex()}"
    sites, connections = {}, dict(more or {})
    for name, database in databases.items():
        server.create_database(database)
        sites[name] = Site(server.uri(database))
        sites[name].run(TABLES)
        for role, login in {"": server.superuser, **LOGINS}.items():
            password = CANARY if role else server.password
            connection = f"{name}_{role}" if role else name
            connections[connection] = connection_json(server, database, login, password)
    try:
        _initialize(path, connections, folder / "airflow")
        edit(sites["london"], sites["capetown"])
        server.create_database(of_airflow)
        uri = server.uri(of_airflow).replace("postgresql:", "postgresql+psycopg:")
        with airflow(folder, dags, connections, path, uri) as at_work:
            repository = open_repository(f"sqlite:///{folder / 'airflow' / 'concord.db'}")
            yield Scene(sites["london"], sites["capetown"], at_work, repository)
            repository.dispose()
    finally:
        for database in (*databases.values(), of_airflow):
            server.drop_database(database)


def _initialize(path: Path, connections: dict[str, str], home: Path) -> None:
    home.mkdir()
    with pytest.MonkeyPatch.context() as environment:
        for name, connection in connections.items():
            environment.setenv(f"AIRFLOW_CONN_{name.upper()}", connection)
        repository = {"conn_type": "sqlite", "host": str(home / "concord.db")}
        environment.setenv("AIRFLOW_CONN_CONCORD_REPOSITORY", str(repository).replace("'", '"'))
        environment.setenv("CONCORD_CONFIG", str(path))
        configuration = load(path)
        provisioning.provision(installations(configuration))
        for name in configuration.synchronizations:
            initialize(configuration, name, "test")
