"""Sessions of tasks over ADBC. It reads the columns of every table of a database before it opens the first one:
with hundreds of tables that takes longer than to carry some rows, so each process does it once for each login."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import adbc_driver_postgresql
from adbc_driver_manager import AdbcConnection, AdbcDatabase
from adbc_driver_postgresql.dbapi import Connection

#: Logins that a worker keeps apart: those of some links, each with a reader and an applier.
KEPT = 16


#: The driver counts a database's sessions, and does not expect threads to open and close them at once.
_COUNTING = Lock()


@dataclass(frozen=True)
class _Kept:
    """A database that does not close together with a session. None of what was read of it goes out of date: what
    travels is of types that every database has, and everything else is text."""

    database: AdbcDatabase

    def close(self) -> None:
        """More sessions may follow."""


@lru_cache(maxsize=KEPT)
def _database(login: str) -> AdbcDatabase:
    database: AdbcDatabase = adbc_driver_postgresql.connect(login)
    return database


class Session(Connection):  # type: ignore[misc]
    """A session to a database that other threads may use as well."""

    def close(self) -> None:
        """Close it, and leave the database to the others."""
        with _COUNTING:
            super().close()


def connect(login: str) -> Session:
    """A new session, in a transaction of its own from its first statement on."""
    with _COUNTING:
        database = _database(login)
        return Session(_Kept(database), AdbcConnection(database))
