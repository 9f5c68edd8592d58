"""A streaming standby of an embedded server, which takes its place."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from embedded import ports, programs
from embedded.account import Account
from embedded.postgres import Server
from embedded.record import Record

#: Seconds within which a standby does what it is waited for.
PATIENCE = 60

SLOT = "a_standby"
#: Settings with which a standby has its primary's failover slots; from PostgreSQL 17 on.
FOLLOWING_SLOTS = {"sync_replication_slots": "on", "hot_standby_feedback": "on"}


def standby_of(primary: Server, directory: Path) -> Server:
    """A new server that streams from the primary, open for readers. The primary keeps the log that it needs."""
    directory.mkdir(parents=True)
    account = Account.of_servers()
    home = programs.home_for(directory, account)
    data = home / "data"
    data.mkdir(mode=0o700)
    account.give(data)
    place = ["--pgdata", data, "--dbname", primary.uri("postgres"), "--create-slot", "--slot", SLOT]
    options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
    copied = account.run([primary.bin / "pg_basebackup", *place, *options])
    assert copied.returncode == 0, copied.stdout
    Record(primary.version, ports.free(), str(home), primary.password).write(directory)
    return Server.open(directory)


def follow(standby: Server, primary: Server) -> None:
    """Until the standby has all that the primary has written."""
    end = _asked(primary, "SELECT pg_current_wal_lsn()::text")
    _until(standby, f"SELECT pg_last_wal_replay_lsn() >= '{end}'")


def follow_slot(standby: Server, primary: Server, name: str, read_on: Callable[[], None]) -> None:
    """Until the standby has the slot as well, whose log must be read on meanwhile; by FOLLOWING_SLOTS."""
    until = time.monotonic() + PATIENCE
    kept = (
        f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}' AND synced AND NOT temporary"
    )
    while not _asked(standby, kept):
        assert time.monotonic() < until, "the standby does not get the slot"
        _asked(primary, "SELECT pg_log_standby_snapshot()::text")
        read_on()
        time.sleep(0.1)


def cut_off(standby: Server) -> None:
    """Nothing reaches the standby any more."""
    _asked(standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    _until(standby, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")


def promote(standby: Server) -> None:
    """It takes the primary's place, and its control file has its new timeline."""
    assert _asked(standby, "SELECT pg_promote()")
    _asked(standby, "CHECKPOINT", "SELECT 1")


def _until(server: Server, asked: str) -> None:
    until = time.monotonic() + PATIENCE
    while not _asked(server, asked):
        assert time.monotonic() < until, asked
        time.sleep(0.02)


def _asked(server: Server, *statements: str) -> Any:
    """The value that the last one gives."""
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        for statement in statements[:-1]:
            superuser.execute(statement.encode())
        ((value,),) = superuser.execute(statements[-1].encode()).fetchall()
        return value
