"""The lines that a person may try at the demo's sites from another terminal: a file to source, and lines to type
after it."""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from demo.environment import FOREIGN
from demo.sites import USERS, Sites

#: The address of `make airflow`, unless something else answers there.
ADDRESS = "http://127.0.0.1:8080"


def environment_file(directory: Path) -> Path:
    """Where the environment of a demo's Airflow is found while it runs."""
    return directory / "environment"


def lines(directory: Path) -> list[str]:
    """Commands for another terminal, in the order in which they make sense."""
    services = [f"psql service={site}" for site in ("london", "capetown")]
    return [f". {shlex.quote(_shown(environment_file(directory)))}", *services, "python -m concord status"]


def write(directory: Path, settings: Mapping[str, str], sites: Sites) -> None:
    """Passwords stand in both files, which nobody else may read; they go when the sites do."""
    services = directory / "pg_service.conf"
    _private(services, "\n".join(_services(sites)))
    first = next(iter(sites.values())).server
    exported = {
        **{name: value for name, value in settings.items() if os.environ.get(name) != value},
        "PGSERVICEFILE": str(services),
    }
    path = f"{first.bin}{os.pathsep}{exported.pop('PATH').split(os.pathsep)[0]}"
    foreign = [name for name in os.environ if name.startswith(FOREIGN) and name not in settings]
    made = [
        *(f"unset {name}" for name in foreign),
        *(f"export {name}={shlex.quote(value)}" for name, value in exported.items()),
        f'export PATH={shlex.quote(path)}:"$PATH"',
    ]
    _private(environment_file(directory), "\n".join([*made, ""]))


def _services(sites: Sites) -> Iterator[str]:
    """libpq's own means to name a connection, so that no password stands on a command line."""
    for site in sites.values():
        yield f"[{site.name}]"
        yield f"host={site.server.host}"
        yield f"port={site.server.port}"
        yield f"dbname={site.name}"
        yield f"user={USERS}"
        yield f"password={site.passwords[USERS]}\n"


def _private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def _shown(path: Path) -> str:
    """From here, where that is shorter."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
