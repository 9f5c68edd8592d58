"""The limit to compare with: the same rows by two streams of psql COPY, then detection, MERGE and shadow rows in SQL.

Written for this one table by hand, knowing it: no log, no locks, no check of arriving rows. It could not be
repeated after a crash, nor told of a second site.
"""

import os
import subprocess
import time
from pathlib import Path

from benchmarks.bookings import COLUMNS
from benchmarks.databases import Database, Databases
from benchmarks.measurement import Measurement

STREAMS = 2

_LIST = ", ".join(COLUMNS)
_VERSION = "origin, changed_at, vector"
_READ = ", ".join(f"b.{column}" for column in COLUMNS[1:])

#: Beside the copy of the table: what it keeps of versions, and how far it has read London.
_PREPARE = (
    "CREATE TABLE public.version (id bigint PRIMARY KEY, origin text, changed_at bigint, vector jsonb,"
    " deleted boolean, position xid8) WITH (fillfactor = 70)",
    "CREATE INDEX version_position ON public.version (position)",
    "CREATE TABLE public.carried (snapshot text)",
)

_SEND = f"""
COPY (SELECT p.id, {_READ}, b.id IS NULL, p.origin, p.changed_at, p.vector
        FROM concord."public.bookings" p LEFT JOIN public.bookings b ON b.id = p.id
       WHERE p.position >= pg_snapshot_xmin('{{carried}}') AND NOT pg_visible_in_snapshot(p.position, '{{carried}}')
         AND p.received_from IS NULL AND (hashtid(p.ctid) & 2147483647) % {STREAMS} = {{stream}})
TO STDOUT (FORMAT binary)"""
_STAGE = (
    "CREATE UNLOGGED TABLE public.staging (LIKE public.bookings, deleted boolean, origin text, changed_at bigint,"
    " vector jsonb)"
)
_RECEIVE = f"COPY public.staging ({_LIST}, deleted, {_VERSION}) FROM STDIN (FORMAT binary)"

#: The fastest plan: by primary key, in its order. Others read the whole table.
_BY_KEY = "-c enable_hashjoin=off -c enable_mergejoin=off -c max_parallel_workers_per_gather=0"

_KNOWN = "coalesce(s.vector -> p.origin >= jsonb_build_array(p.changed_at, 0), false)"
_DETECT = f"""
DELETE FROM public.staging s USING public.version p
 WHERE p.id = s.id AND NOT {_KNOWN} AND p.changed_at > s.changed_at"""

_ASSIGNED = ", ".join(f"{column} = s.{column}" for column in COLUMNS[1:])
_MERGE = f"""
MERGE INTO public.bookings t USING (SELECT * FROM public.staging ORDER BY id) s ON t.id = s.id
WHEN MATCHED AND s.deleted THEN DELETE
WHEN MATCHED THEN UPDATE SET {_ASSIGNED}
WHEN NOT MATCHED AND NOT s.deleted THEN INSERT ({_LIST}) VALUES ({", ".join(f"s.{column}" for column in COLUMNS)})"""
_REMEMBER = f"""
INSERT INTO public.version (id, {_VERSION}, deleted, position)
SELECT id, {_VERSION}, deleted, pg_current_xact_id() FROM public.staging ORDER BY id
ON CONFLICT (id) DO UPDATE SET origin = excluded.origin, changed_at = excluded.changed_at, vector = excluded.vector,
  deleted = excluded.deleted, position = excluded.position"""


def prepare(databases: Databases) -> None:
    """Make the table of versions; nothing that London holds now is to be carried."""
    databases.by_hand.run(*_PREPARE, f"INSERT INTO public.carried VALUES ('{_snapshot(databases)}')")


def run_by_hand(databases: Databases) -> Measurement:
    """Move what users changed in London since the last time to the Cape Town that is written by hand.

    Raises CalledProcessError when psql fails.
    """
    target = databases.by_hand
    (carried,) = target.row("SELECT snapshot FROM public.carried")
    began = time.monotonic()
    now = _snapshot(databases)
    _psql(target, _STAGE)
    _pipe(databases.london, target, carried)
    copied = time.monotonic()
    remembered = f"UPDATE public.carried SET snapshot = '{now}'"
    _psql(target, "ANALYZE public.staging", _DETECT, _MERGE, _REMEMBER, remembered, together=True)
    written = time.monotonic()
    _psql(target, "DROP TABLE public.staging")
    parts = {"copy": copied - began, "write": written - copied}
    return Measurement(time.monotonic() - began, parts)


def _snapshot(databases: Databases) -> str:
    (found,) = databases.london.row("SELECT pg_current_snapshot()::text")
    return str(found)


def _pipe(source: Database, target: Database, carried: str) -> None:
    """All streams at once, each from one psql to another."""
    sends = [_SEND.format(carried=carried, stream=stream) for stream in range(STREAMS)]
    started = []
    for send in sends:
        sending = subprocess.Popen(_command(source, send), env=_environment(source), stdout=subprocess.PIPE)
        receiving = subprocess.Popen(
            _command(target, _RECEIVE), env=_environment(target), stdin=sending.stdout
        )
        assert sending.stdout is not None, "it was asked for"
        sending.stdout.close()  # the other process holds it
        started += [sending, receiving]
    failed = [process for process in started if process.wait()]
    if failed:
        raise subprocess.CalledProcessError(failed[0].returncode, failed[0].args)


def _psql(database: Database, *statements: str, together: bool = False) -> None:
    transaction = ["--single-transaction"] if together else []
    command = [*_command(database, *statements), *transaction]
    subprocess.run(command, env=_environment(database), check=True)


def _command(database: Database, *statements: str) -> list[str]:
    program: Path = database.server.bin / "psql"
    options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
    return [str(program), *options, *(f"--command={statement}" for statement in statements)]


def _environment(database: Database) -> dict[str, str]:
    return {**command_environment(database), "PGOPTIONS": _BY_KEY}


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
