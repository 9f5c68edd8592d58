"""The recipe of docs/own-databases.md, then docs/uninstall.md, on two servers that nothing of Concord's has made
ready.

`python -m tests.docs.own_databases` writes what the commands print now into both pages.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from embedded.postgres import Server
from tests.docs.transcript import Shell, played
from tests.given.releases import release_of

PROJECT = Path(__file__).resolve().parents[2]
RECIPE, REMOVAL = PROJECT / "docs" / "own-databases.md", PROJECT / "docs" / "uninstall.md"
HOSTS = ("db.london.example", "db.capetown.example")
ROWS = "INSERT INTO customers VALUES (7, 'Ada', 80), (8, 'Grace', 50.5); INSERT INTO orders VALUES (1, 7, 12)"
_PASSWORD = "the clerk's own"
_IN_THE_CLONE = ("Makefile", "config", "dags", "docs", "embedded", "plugins", "spark_jobs")


@contextmanager
def customers(directory: Path) -> Iterator[tuple[Server, Server]]:
    """Two servers as their DBA has them: an owner, a clerk, and the recipe's tables, with rows at the first."""
    tables = _sql(RECIPE)
    with ExitStack() as stack:
        london, capetown = (
            Server.create(directory / host, version=release_of(host.split(".")[1])) for host in HOSTS
        )
        for server in (london, capetown):
            stack.callback(server.remove)
            server.create_database("crm")
            with psycopg.connect(server.uri("crm"), autocommit=True) as superuser:
                superuser.execute("CREATE ROLE crm_owner LOGIN PASSWORD 'the owner''s own'")
                superuser.execute("CREATE ROLE clerk LOGIN PASSWORD 'the clerk''s own'")
                superuser.execute("ALTER DATABASE crm OWNER TO crm_owner")
                superuser.execute("SET ROLE crm_owner")
                superuser.execute(tables)
                superuser.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON customers, orders TO clerk")
                if server is london:
                    superuser.execute(ROWS)
        yield london, capetown


def clone(directory: Path) -> Path:
    """A person's files after `git clone` and `make install`; the folder `own` lands beside them."""
    made = directory / "concord"
    made.mkdir()
    for name in _IN_THE_CLONE:
        (made / name).symlink_to(PROJECT / name)
    (made / ".venv").symlink_to(sys.prefix)
    # Older than what was installed, or make would install it anew.
    for pins in ("requirements.txt", "requirements-demo.txt"):
        (made / pins).touch()
        os.utime(made / pins, (0, 0))
    return made


def environment(directory: Path, servers: tuple[Server, Server]) -> dict[str, str]:
    """A person's: no Java, nothing of Airflow's, and the passwords of the superuser and the clerk where psql
    looks."""
    programs = directory / "programs"
    programs.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            if program.name not in {"java", "javac", "psql"} and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    (programs / "psql").symlink_to(servers[0].bin / "psql")
    passwords = directory / "pgpass"
    passwords.touch(mode=0o600)
    passwords.write_text(
        "".join(
            f"{server.host}:{server.port}:crm:{server.superuser}:{server.password}\n"
            f"{server.host}:{server.port}:crm:clerk:{_PASSWORD}\n"
            for server in servers
        )
    )
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}
    settings = {"PATH": str(programs), "PGPASSFILE": str(passwords), "LANG": "C.UTF-8", "COLUMNS": "120"}
    return {**kept, **settings}


def _sql(page: Path) -> str:
    (block,) = re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)
    return str(block)


def pages_now(directory: Path) -> dict[Path, str]:
    """Both pages with what their commands print now."""
    with customers(directory) as servers:
        ports = {host: str(server.port) for host, server in zip(HOSTS, servers, strict=True)}

        def typed(command: str) -> str:
            for host, port in ports.items():
                command = command.replace(f"{host}:5432", f"127.0.0.1:{port}")
                command = command.replace(f"-h {host} -p 5432", f"-h 127.0.0.1 -p {port}")
            return command

        def shown(said: str) -> str:
            for host, port in ports.items():
                said = said.replace(f"-h 127.0.0.1 -p {port}", f"-h {host} -p 5432")
            said = re.sub(r"\bmanual__\S+", "manual__2026-11-24T10:00:00+00:00", said)
            return re.sub(r"\b\d+\.\d+ s\b", "1.0 s", said)

        made = clone(directory)
        with Shell(made, environment(directory, servers)) as shell:
            recipe = played(RECIPE.read_text(), shell, typed, shown)
            _take_out_a_table(made / "own")
            return {RECIPE: recipe, REMOVAL: played(REMOVAL.read_text(), shell, typed, shown)}


def _take_out_a_table(own: Path) -> None:
    """The edits that the page asks a person to do with an editor."""
    configuration = own / "concord.yaml"
    lines = configuration.read_text().splitlines(keepends=True)
    configuration.write_text("".join(line for line in lines if "public.orders" not in line))
    (own / "remove_table.sql").write_text(_sql(REMOVAL))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for page, text in pages_now(Path(place)).items():
            page.write_text(text)
