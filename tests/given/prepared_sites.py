"""Databases of one server as their DBA has them, and the folder that `prepare` writes for two of them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

from concord.databases.contract.logins import LOG_READER, LOGINS, name_of
from concord.databases.postgresql.sites.owner import role
from concord.databases.provisioning import Installation
from concord.jobs.site import Credentials, SiteAccess
from concord.terminal.prepare import Place, prepare
from embedded.postgres import Server

OWNER = "Owner of CRM"
TABLES = ["public.customers", 'ops."Odd Table"']
MADE = f"""
CREATE SCHEMA ops AUTHORIZATION "{OWNER}";
GRANT USAGE, CREATE ON SCHEMA public TO "{OWNER}";
SET ROLE "{OWNER}";
CREATE TABLE public.customers (id int PRIMARY KEY);
CREATE TABLE ops."Odd Table" (id int PRIMARY KEY);
"""


def logins(database: str) -> list[str]:
    """The names of the three that every script makes."""
    return [name_of(login, database) for login in LOGINS]


@contextmanager
def owned(
    server: Server, databases: Sequence[str], made: str = MADE, users: Sequence[str] = ()
) -> Iterator[None]:
    """The tables, which belong to an ordinary role, in each database, and roles for their users. These roles are
    dropped afterwards, and those of the scripts."""
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        for name in (OWNER, *users):
            superuser.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    for each in databases:
        with psycopg.connect(server.uri(each), autocommit=True) as superuser:
            superuser.execute(made.encode())
    yield
    named = [
        name for each in databases for name in (*logins(each), name_of(LOG_READER, each), role(each), *LOGINS)
    ]
    for each in databases:
        with psycopg.connect(server.uri(each), autocommit=True) as superuser:
            found = superuser.execute(
                "SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", [[OWNER, *users, *named]]
            )
            made = sql.SQL(", ").join(sql.Identifier(name) for (name,) in found)
            superuser.execute(sql.SQL("DROP OWNED BY {}").format(made))
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(sql.SQL("DROP ROLE {}").format(made))


def prepared(
    folder: Path,
    server: Server,
    databases: Sequence[str],
    tables: Sequence[str] = TABLES,
    *,
    publishes: bool = False,
) -> None:
    """The folder of the sites london and capetown."""
    london, capetown = (
        Place.parse(f"{site}={server.host}:{server.port}/{quote(each, safe='')}")
        for site, each in zip(("london", "capetown"), databases, strict=True)
    )
    prepare(folder, [replace(london, publishes=publishes), capetown], tables, None)


def connections(folder: Path) -> dict[str, dict[str, str]]:
    """By the connections' names in capitals, as the folder's environment has them."""
    exported = re.findall(
        r"^export AIRFLOW_CONN_(\w+)=(.*)$", (folder / "environment").read_text(), re.MULTILINE
    )
    return {name: json.loads(*shlex.split(value)) for name, value in exported}


def credentials(folder: Path, connection: str) -> Credentials:
    """Of a connection of the folder's, such as `london_reader`."""
    given = connections(folder)[connection.upper()]
    names = {"host": "host", "port": "port", "schema": "database", "login": "user", "password": "password"}
    return Credentials.model_validate({ours: given[theirs] for theirs, ours in names.items()})


def access(folder: Path, site: str) -> SiteAccess:
    """As links log in."""
    return SiteAccess(
        name=site,
        reader=credentials(folder, f"{site}_reader"),
        applier=credentials(folder, f"{site}_applier"),
    )


def installation(folder: Path, site: str, log_reader: str = "", **of: Any) -> Installation:
    """As `provision` is given it, by the connections' names."""
    reader, applier = (credentials(folder, f"{site}_{each}").user for each in ("reader", "applier"))
    reads_log = credentials(folder, log_reader).user if log_reader else ""
    fields = {"tables": (), **of}
    return Installation(
        site=site,
        installer=credentials(folder, site),
        reader=reader,
        applier=applier,
        log_reader=reads_log,
        **fields,
    )


def run_script(folder: Path, site: str, server: Server, database: str) -> list[str]:
    """As a superuser runs it; the notices that he sees."""
    notices: list[str] = []
    with psycopg.connect(server.uri(database), autocommit=True) as superuser:
        superuser.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        superuser.execute((folder / f"{site}.sql").read_text().encode())
    return notices
