"""Logins that install Concord, and what a superuser does for them."""

import os
import subprocess

import psycopg
import pytest
from psycopg import sql

from concord.databases import provisioning
from concord.databases.provisioning import Installation
from concord.messages.errors import ProvisioningRefused
from embedded.postgres import Server
from tests.given.site import PASSWORD, Site


def new_installer(server: Server) -> str:
    """A login without attributes that owns the tables."""
    name = f"an_installer_{os.urandom(4).hex()}"
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        superuser.execute(create.format(sql.Identifier(name), sql.Literal(PASSWORD)))
    return name


def new_role(server: Server) -> str:
    """One without attributes that cannot log in: an owner of tables."""
    name = f"an_owner_{os.urandom(4).hex()}"
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {name}".encode())
    return name


def refused(installations: list[Installation]) -> str:
    with pytest.raises(ProvisioningRefused) as error:
        provisioning.provision(installations)
    return error.value.message


def run_by_a_superuser(server: Server, site: Site, script: str) -> None:
    psql = [server.bin / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", server.uri(site.database)]
    ran = subprocess.run(psql, input=script, text=True, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def rename(site: Site, database: str) -> None:
    """As a superuser renames a database, and mends the connections to it."""
    site.connection.close()
    before, site.database = site.database, "postgres"
    with site.log_in(site.superuser) as connection:
        connection.execute(f'ALTER DATABASE "{before}" RENAME TO "{database}"'.encode())
    site.database = database
    site.connection = site.log_in(site.superuser)
