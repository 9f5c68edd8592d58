"""`python -m concord prepare`: a folder with all that two databases of a person's own need to become sites."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from concord.configuration.configuration import load
from concord.databases.contract.logins import APPLIER, INSTALLER, LOG_READER, LOGINS, READER, Wanted, name_of
from concord.databases.registry import dialect
from concord.machine.clone import clone
from concord.messages.errors import ConcordError, ParametersRefused
from concord.messages.inert import inert
from concord.tables.identity import SLOTS
from concord.terminal.shown import say
from concord.values.identifier import TableName, parse_table_name

CONFIGURATION, ENVIRONMENT, CONNECTIONS = "concord.yaml", "environment", "connections.json"
#: The name of each login's connection after its site.
_SUFFIXES = {INSTALLER: "", READER: "_reader", APPLIER: "_applier", LOG_READER: "_log_reader"}
#: Whose ports, connections and programs the folder speaks of.
_DIALECT = "postgresql"
_PLACE = "write it as london=db.london.example:5432/crm"


@dataclass(frozen=True, slots=True)
class Place:
    """A database that is to become a site."""

    site: str
    host: str
    port: int
    database: str
    publishes: bool = False  #: the other site replays its transactions

    @property
    def logins(self) -> tuple[str, ...]:
        return (*LOGINS, LOG_READER) if self.publishes else LOGINS

    @classmethod
    def parse(cls, text: str) -> Place:
        """`london=db.london.example:5432/crm`. Raises ParametersRefused."""
        site, equals, place = text.partition("=")
        try:
            parts = urlsplit(f"//{place}")
            port = parts.port or 5432
        except ValueError as error:
            raise ParametersRefused(f"{site}: {error}; {_PLACE}") from None
        if not equals or "@" in place or not parts.hostname or not parts.path.strip("/"):
            raise ParametersRefused(f"{site} is not a site with its host and database; {_PLACE}")
        return cls(site, parts.hostname, port, unquote(parts.path.strip("/")))


def run(asked: argparse.Namespace) -> int:
    """Write the folder and say what to type next. Raises a ConcordError."""
    first, *others = [Place.parse(text) for text in asked.sites]
    places = [replace(first, publishes=asked.replication), *others]
    prepare(asked.folder, places, asked.tables, asked.root_certificate)
    holds = ", ".join(_names(places))
    if clone() is not None:  # an installed Concord has an Airflow already, beside it
        _make_airflow(asked.folder.absolute())
        holds += " and Airflow's own database"
    say(f"{asked.folder} holds {holds}. Next:")
    for line in next_steps(asked.folder, places):
        say(f"  {line}")
    return 0


def prepare(folder: Path, places: Sequence[Place], tables: Sequence[str], certificate: str | None) -> None:
    """Write the folder's files, or nothing. Raises ParametersRefused or ConfigurationInvalid."""
    if there := [name for name in _names(places) if (folder / name).exists()]:
        raise ParametersRefused(
            f"{folder} holds {', '.join(there)} already; name another folder, or remove it"
        )
    if len({(place.host, place.port, place.database) for place in places}) < len(places):
        names = " and ".join(place.site for place in places)
        raise ParametersRefused(f"{names} are the same database; give each site its own")
    configuration = _configuration(places, tables)
    _check(configuration)
    passwords = {place.site: {login: secrets.token_urlsafe(24) for login in place.logins} for place in places}
    named = [parse_table_name(table) for table in tables]
    texts = {
        CONFIGURATION: configuration,
        **{f"{place.site}.sql": _script(place, named, passwords[place.site]) for place in places},
        **_for_airflow(folder.absolute(), _connections(places, passwords, certificate)),
    }
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in texts.items():
        _write(folder / name, text)


def _names(places: Sequence[Place]) -> list[str]:
    ours = CONNECTIONS if clone() is None else ENVIRONMENT
    return [CONFIGURATION, ours, *(f"{place.site}.sql" for place in places)]


def _configuration(places: Sequence[Place], tables: Sequence[str]) -> str:
    sites = "".join(map(_site, places))
    listed = "".join(f"      - table: {json.dumps(table, ensure_ascii=False)}\n" for table in tables)
    kind, *parts = (
        ("replications", "publisher", "subscriber")
        if places[0].publishes
        else ("synchronizations", "source", "target")
    )
    ends = "".join(f"    {part}: {place.site}\n" for part, place in zip(parts, places, strict=True))
    return f"""\
# What is kept equal, and how: docs/configuration.md. Check it with: python -m concord check-config
sites:
{sites}replication_sets:
  shared:
{"" if places[0].publishes else _identity(places)}    tables:
{listed}{kind}:
  {_name(places)}:
    replication_set: shared
{ends}    schedule: "*/5 * * * *"
"""


def _identity(places: Sequence[Place]) -> str:
    """Users of all these sites insert rows."""
    slot = ", ".join(f"{place.site}: {number}" for number, place in enumerate(places, start=1))
    return (
        "    # Every site's sequences hand out numbers of its own: docs/identity-ranges.md\n"
        f"    identity: {{slots: {SLOTS}, slot: {{{slot}}}}}\n"
    )


def _site(place: Place) -> str:
    site = place.site
    log_reader = f", log_reader: {site}_log_reader" if place.publishes else ""
    return f"  {site}: {{connection: {site}, reader: {site}_reader, applier: {site}_applier{log_reader}}}\n"


def _name(places: Sequence[Place]) -> str:
    """Of the synchronization or the replication."""
    return ("_to_" if places[0].publishes else "_").join(place.site for place in places)


def _check(configuration: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, CONFIGURATION)
        file.write_text(configuration)
        load(file)


def _script(place: Place, tables: Sequence[TableName], passwords: Mapping[str, str]) -> str:
    many = "Four" if place.publishes else "Three"
    where = f"site {place.site}: a superuser of its database {inert(place.database)}"
    head = f"-- {many} logins for {where} runs this once.\n"
    return head + dialect(_DIALECT).logins(Wanted(place.database, tables, passwords))


def _for_airflow(folder: Path, connections: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """The file that tells Airflow of the sites: one to import into the Airflow that is there; else its
    environment."""
    if clone() is None:
        return {CONNECTIONS: json.dumps(connections, indent=2) + "\n"}
    return {ENVIRONMENT: "\n".join(_environment(folder, connections)) + "\n"}


def _environment(folder: Path, connections: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    yield f"# Read it into each shell that runs Concord or Airflow: . {shlex.quote(str(folder / ENVIRONMENT))}"
    for name, value in _settings(folder).items():
        yield _exported(name, value)
    yield f"export PATH={shlex.quote(str(Path(sys.executable).parent))}{os.pathsep}$PATH"
    for name, connection in connections.items():
        yield _exported(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))


def _settings(folder: Path) -> dict[str, str]:
    """Of an Airflow of the clone's own."""
    root = clone()
    assert root is not None
    return {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__API__HOST": "127.0.0.1",  # `airflow standalone` would listen to everybody
        "AIRFLOW__CORE__DAGS_FOLDER": str(root / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(root / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "CONCORD_CONFIG": str(folder / CONFIGURATION),
        "PYTHONPATH": f"{root / 'plugins'}{os.pathsep}{root}",
    }


def _make_airflow(folder: Path) -> None:
    """Airflow's own database, as `airflow db migrate` makes it. Raises ConcordError with what Airflow said last."""
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    environment = {**os.environ, **_settings(folder)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = "\n".join((ended.stdout + ended.stderr).splitlines()[-3:])
        raise ConcordError(f"`airflow db migrate` failed in {folder / 'airflow'}:\n{said}")


def _connections(
    places: Sequence[Place], passwords: Mapping[str, Mapping[str, str]], certificate: str | None
) -> dict[str, dict[str, object]]:
    """By their ids: one of each login at each site, and Spark's."""
    sites = {
        f"{place.site}{_SUFFIXES[login]}": _connection(place, login, password, certificate)
        for place in places
        for login, password in passwords[place.site].items()
    }
    return {**sites, "spark_default": {"conn_type": "spark", "host": "local[2]"}}


def _connection(place: Place, login: str, password: str, certificate: str | None) -> dict[str, object]:
    extra = {"dialect": _DIALECT, **({} if certificate is None else {"sslrootcert": certificate})}
    where = {"host": place.host, "port": place.port, "schema": place.database}
    name = name_of(login, place.database)
    return {"conn_type": "postgres", **where, "login": name, "password": password, "extra": extra}


def _exported(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _write(file: Path, text: str) -> None:
    """Readable by its owner alone, whatever the mask says."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)


def next_steps(folder: Path, places: Sequence[Place]) -> Iterator[str]:
    """The commands to type from here on, one a line."""
    for place in places:
        where = f"-h {shlex.quote(place.host)} -p {place.port} -U postgres -d {shlex.quote(place.database)}"
        yield f"psql {where} -f {shlex.quote(str(folder / f'{place.site}.sql'))}"
    if clone() is None:
        yield f"airflow connections import {shlex.quote(str(folder / CONNECTIONS))}"
        configuration = shlex.quote(str(folder / CONFIGURATION))
        yield f"install -D {configuration} ${{AIRFLOW_HOME:-~/airflow}}/config/{CONFIGURATION}"
    else:
        yield f". {shlex.quote(str(folder / ENVIRONMENT))}"
    name = _name(places)
    yield "python -m concord provision"
    if places[0].publishes:
        yield f"python -m concord replicate {name} --initialize"
        yield f"python -m concord replicate {name}"
    else:
        yield f"python -m concord initialize {name}"
        yield f"python -m concord synchronize {name}"
