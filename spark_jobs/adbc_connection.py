"""Connections of executors over ADBC. It reads the columns of every table of a database before it opens the first one.
With hundreds of tables that takes longer than to carry some rows, so each worker does it once for each login."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import adbc_driver_postgresql
from adbc_driver_manager import AdbcConnection, AdbcDatabase
from adbc_driver_postgresql.dbapi import Connection

#: Logins that a worker keeps apart: those of some links, each with a reader and an applier.
KEPT = 16


@dataclass(frozen=True)
class _Kept:
    """A database that does not close together with a connection. None of what was read of it goes out of date: what
    travels is of types that every database has, and everything else is text."""

    database: AdbcDatabase

    def close(self) -> None:
        """More connections may follow."""


@lru_cache(maxsize=KEPT)
def _database(login: str) -> AdbcDatabase:
    database: AdbcDatabase = adbc_driver_postgresql.connect(login)
    return database


def connect(login: str) -> Connection:
    """A new connection, in a transaction of its own from its first statement on."""
    database = _database(login)
    return Connection(_Kept(database), AdbcConnection(database))
