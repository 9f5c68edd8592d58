"""The limit to compare with: the same rows moved by psql COPY, then written by one INSERT and one DELETE.

It knows which rows changed from a list, sees no conflict, keeps no version and no log, and locks nothing first.
"""

import os
import subprocess
import time
from pathlib import Path

from benchmarks.bookings import COLUMNS
from benchmarks.databases import Database, Databases
from benchmarks.measurement import Measurement

_LIST = ", ".join(COLUMNS)
_READ = ", ".join(f"b.{column}" for column in COLUMNS[1:])

_SEND = f"""
COPY (SELECT e.id, {_READ}, b.id IS NULL FROM public.edited e LEFT JOIN public.bookings b USING (id))
TO STDOUT (FORMAT binary)"""
_STAGE = "CREATE UNLOGGED TABLE public.staging (LIKE public.bookings, deleted boolean)"
_RECEIVE = f"COPY public.staging ({_LIST}, deleted) FROM STDIN (FORMAT binary)"

_ASSIGNED = ", ".join(f"{column} = excluded.{column}" for column in COLUMNS[1:])
_WRITE = (
    "ANALYZE public.staging",
    f"""
INSERT INTO public.bookings ({_LIST}) SELECT {_LIST} FROM public.staging WHERE NOT deleted
ON CONFLICT (id) DO UPDATE SET {_ASSIGNED}""",
    "DELETE FROM public.bookings b USING public.staging s WHERE s.deleted AND s.id = b.id",
)


def run_by_hand(databases: Databases) -> Measurement:
    """Move what `edited` lists from London to the Cape Town that is written by hand.

    Raises CalledProcessError when psql fails.
    """
    source, target = databases.london, databases.by_hand
    began = time.monotonic()
    _psql(target, _STAGE)
    _pipe(source, target)
    copied = time.monotonic()
    _psql(target, *_WRITE, together=True)
    written = time.monotonic()
    _psql(target, "DROP TABLE public.staging")
    parts = {"copy": copied - began, "write": written - copied}
    return Measurement(time.monotonic() - began, parts)


def _pipe(source: Database, target: Database) -> None:
    sending = subprocess.Popen(
        _command(source, _SEND), env=command_environment(source), stdout=subprocess.PIPE
    )
    with sending:
        command = _command(target, _RECEIVE)
        subprocess.run(command, env=command_environment(target), stdin=sending.stdout, check=True)
    if sending.returncode:
        raise subprocess.CalledProcessError(sending.returncode, sending.args)


def _psql(database: Database, *statements: str, together: bool = False) -> None:
    transaction = ["--single-transaction"] if together else []
    command = [*_command(database, *statements), *transaction]
    subprocess.run(command, env=command_environment(database), check=True)


def _command(database: Database, *statements: str) -> list[str]:
    program: Path = database.server.bin / "psql"
    options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
    return [str(program), *options, *(f"--command={statement}" for statement in statements)]


def command_environment(database: Database) -> dict[str, str]:
    """psql and pg_dump read the password here: an argument would show in the list of processes."""
    server = database.server
    return {
        **os.environ,
        "PGHOST": server.host,
        "PGPORT": str(server.port),
        "PGUSER": server.superuser,
        "PGPASSWORD": server.password,
        "PGDATABASE": database.name,
    }
