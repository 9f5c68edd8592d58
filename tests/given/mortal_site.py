"""A site on a server of its own, whose files may be put back."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg

from embedded.postgres import Server
from tests.given.releases import release_of
from tests.given.site import Site, create_logins


def mortal_server(directory: Path, *, version: int | None = None, **settings: str) -> Server:
    """A server with the tests' logins, of London's version where none is asked for."""
    server = Server.create(directory, version=version or release_of("london"), settings=settings)
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        create_logins(superuser)
    return server


def while_stopped(site: Site, server: Server, act: Callable[[Path], object]) -> None:
    site.connection.close()
    server.stop()
    act(server.data)
    server.start()
    moved(site, server)


def moved(site: Site, server: Server) -> None:
    """From here on the site is the database of its name on this server."""
    site.port = server.port
    site.connection = site.log_in(site.superuser)


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def put_back(backup: Path, data: Path) -> None:
    shutil.rmtree(data)
    copy(backup, data)
