"""Two sites with the tables, ready for the first run of a mode."""

import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.lag_modes import LOG_READER, Mode
from concord.configuration.configuration import load
from demo import sites, starting_point
from demo.environment import environment
from demo.sites import INSTALLER, LONDON, Site, Sites

TABLE = (
    "CREATE TABLE public.bookings (id integer PRIMARY KEY, note text)",
    "INSERT INTO public.bookings SELECT n, 'as loaded' FROM generate_series(1, 10000) n",
)
_LOGIN = "concord_log_reader"


@contextmanager
def prepared(directory: Path, path: Path, mode: Mode) -> Iterator[tuple[Sites, dict[str, str]]]:
    """The sites under this configuration, provisioned and initialized, and the connections that it names."""
    configuration = load(path)
    with sites.running(directory / "sites", keep=False, settings=mode.server_settings) as made:
        for site in made.values():
            _fill(site, rows=not mode.replicates or site.name == LONDON)
        connections = sites.connections(made, configuration)
        if mode.replicates:
            connections[LOG_READER] = _log_reader(made[LONDON])
            _initialize(directory / "airflow", path, connections)
        else:
            starting_point.provision_sites(made, configuration)
            starting_point.initialize(made, configuration)
        yield made, connections


def _fill(site: Site, *, rows: bool) -> None:
    with site.connect(INSTALLER) as owner:
        for statement in TABLE[: 1 + rows]:
            owner.execute(statement.encode())
    sites.admit_users(site)


def _log_reader(site: Site) -> str:
    """Make the login; its connection."""
    password = secrets.token_urlsafe(24)
    with site.connect_as_superuser() as superuser:
        superuser.execute(f"CREATE ROLE {_LOGIN} LOGIN REPLICATION PASSWORD '{password}'".encode())
    return replace(site, passwords={_LOGIN: password}).airflow_connection(_LOGIN)


def _initialize(home: Path, path: Path, connections: Mapping[str, str]) -> None:
    """By the commands that a person types."""
    surroundings = {**environment(home, connections), "CONCORD_CONFIG": str(path)}
    for command in (["provision"], ["replicate", starting_point.SYNCHRONIZATION, "--initialize"]):
        typed = [sys.executable, "-m", "concord", *command]
        subprocess.run(typed, env=surroundings, check=True, stdout=subprocess.DEVNULL)
