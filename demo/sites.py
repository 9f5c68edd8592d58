"""The demo's two sites: an embedded PostgreSQL server each, with Concord's three logins and the users' own."""

import json
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from pydantic import SecretStr

from concord.configuration.configuration import Configuration
from concord.configuration.settings import SiteSettings
from concord.databases.postgresql.sites import owner
from concord.databases.postgresql.sites.grants import APPLIER_SETTINGS
from concord.jobs.site import Credentials, SiteAccess
from embedded.postgres import Server

INSTALLER, READER, APPLIER = "concord_installer", "concord_reader", "concord_applier"
#: Whom the application at a site logs in as.
USERS = "operations"

LONDON, CAPETOWN = "london", "capetown"
TITLES = {LONDON: "London", CAPETOWN: "Cape Town"}

#: Plenty for the demo, so that no checkpoint falls into it.
_SETTINGS = {"max_wal_size": "4GB", "checkpoint_timeout": "30min"}

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Site:
    """A site's server, its one database, and the passwords of the four logins."""

    name: str
    server: Server
    passwords: Mapping[str, str] = field(repr=False)

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def credentials(self, login: str) -> Credentials:
        return Credentials(
            host=self.server.host,
            port=self.server.port,
            database=self.name,
            user=login,
            password=SecretStr(self.passwords[login]),
        )

    @contextmanager
    def connect(self, login: str, *, autocommit: bool = True) -> Iterator[Connection]:
        uri = self.server.uri(self.name, login, self.passwords[login])
        with psycopg.connect(uri, autocommit=autocommit) as connection:
            yield connection

    @contextmanager
    def connect_as_superuser(self) -> Iterator[Connection]:
        with psycopg.connect(self.server.uri(self.name), autocommit=True) as connection:
            yield connection

    def access(self, settings: SiteSettings) -> SiteAccess:
        """The library's facts about this site."""
        return SiteAccess(
            name=self.name,
            readers=settings.readers,
            max_clock_skew=settings.max_clock_skew.total_seconds(),
            reader=self.credentials(READER),
            applier=self.credentials(APPLIER),
        )

    def airflow_connections(self, settings: SiteSettings) -> dict[str, str]:
        """Airflow connection id → its JSON, with the password: for a process's environment alone."""
        logins = {
            settings.reader_connection: READER,
            settings.applier_connection: APPLIER,
            settings.installer_connection: INSTALLER,
        }
        return {name: self.airflow_connection(login) for name, login in logins.items()}

    def airflow_connection(self, login: str) -> str:
        """Its JSON, with the password: for a process's environment alone."""
        place = {"host": self.server.host, "port": self.server.port, "schema": self.name}
        who = {"login": login, "password": self.passwords[login]}
        return json.dumps({"conn_type": "postgres", **place, **who})


Sites = Mapping[str, Site]


@contextmanager
def running(directory: Path, *, keep: bool, settings: Mapping[str, str] | None = None) -> Iterator[Sites]:
    """Both sites, new and empty, below `directory`; removed when the block ends, unless they are to be kept.

    `settings` are the servers', besides the demo's own.
    """
    every = {**_SETTINGS, **(settings or {})}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: _start(name, directory / name, every, keep), TITLES)
        made = {site.name: site for site in found}
    try:
        yield made
    finally:
        for site in made.values():
            if not keep:
                site.server.remove()


def connections(sites: Sites, configuration: Configuration) -> dict[str, str]:
    """Every Airflow connection that the configuration names for the sites."""
    return {
        name: value
        for site in sites.values()
        for name, value in site.airflow_connections(configuration.sites[site.name]).items()
    }


def _start(name: str, directory: Path, settings: Mapping[str, str], keep: bool) -> Site:
    server = Server.create(directory, settings=settings, keep=keep)
    passwords = {login: secrets.token_urlsafe(24) for login in (INSTALLER, READER, APPLIER, USERS)}
    server.create_database(name)
    site = Site(name, server, passwords)
    with site.connect_as_superuser() as superuser:
        _create_logins(superuser, site)
    return site


def _create_logins(superuser: Connection, site: Site) -> None:
    database = sql.Identifier(site.name)
    for login, password in site.passwords.items():
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        superuser.execute(create.format(sql.Identifier(login), sql.Literal(password)))
    # The installer owns the database and its tables, on which it puts the capture triggers.
    superuser.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, sql.Identifier(INSTALLER)))
    # Concord's objects belong to a role of its own, as which the installer may act.
    for statement in owner.creation(owner.role(site.name), INSTALLER, superuser.info.server_version):
        superuser.execute(statement.encode())
    granted = sql.SQL(", ").join(map(sql.Identifier, APPLIER_SETTINGS))
    # Only a superuser can grant these; everything else is granted by provisioning.
    superuser.execute(sql.SQL("GRANT SET ON PARAMETER {} TO {}").format(granted, sql.Identifier(APPLIER)))


def admit_users(site: Site) -> None:
    """Let the site's users read and change every table, as an ordinary application would."""
    with site.connect(INSTALLER) as owner:
        rights = sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}")
        owner.execute(rights.format(sql.Identifier(USERS)))
