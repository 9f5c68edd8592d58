"""How the repository is opened: which databases may hold it, and how each one is made to keep its word."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError

from concord.messages.connection_words import one_sentence
from concord.messages.errors import ConnectionRefused, RepositoryUnavailable

#: How long a writer waits for another one, and a connection for the server, before it gives up.
BUSY_SECONDS = 30
CONNECT_SECONDS = 10

_SQLITE_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}


def open_repository(url: URL | str) -> Engine:
    """An engine on the repository at `url`; connects on first use.

    SQLite: a file, in WAL mode, with foreign keys; PostgreSQL: READ COMMITTED. Idle connections are not kept:
    the tasks that use them are short, and a forked process must not inherit one.

    Raises ConnectionRefused for any other database; in use RepositoryUnavailable. No message has a password.
    """
    parsed = _parse(url)
    engine = _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed)
    event.listen(engine, "handle_error", _name_the_trouble, retval=True)
    return engine


def reading(engine: Engine) -> Engine:
    """The same engine for transactions that only read: on SQLite they do not wait for writers."""
    return engine.execution_options(only_reads=True)


def _parse(url: URL | str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # their text may hold the password
        raise ConnectionRefused(
            "The repository's URL cannot be read; write sqlite:///file or postgresql://…"
        ) from None
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConnectionRefused(
            f"The repository lives in SQLite or PostgreSQL, not in {parsed.get_backend_name()!r}."
        )
    return parsed


def _sqlite(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise ConnectionRefused("The repository needs a file: write sqlite:////path/to/repository.db.")
    file = Path(str(url.database))
    file.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # SQLite tells it, in use
        _keep_private(file)
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _keep_private(file: Path) -> None:
    """It holds rows of the conflict log: this account alone may read what is made. A file of ours that everybody may
    read was made by an earlier version, and is closed; a group that somebody let in stays.

    SQLite gives the files beside it the mode of the database.
    """
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    for each in (file, *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm", "journal"))):
        with suppress(FileNotFoundError):
            found = each.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & stat.S_IRWXO:
                each.chmod(0o600)


def _postgresql(url: URL) -> Engine:
    arguments = {"connect_timeout": CONNECT_SECONDS, "application_name": "concord repository"}
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        isolation_level="READ COMMITTED",
        connect_args=arguments,
    )


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # Python would begin late and commit before DDL: `_begin_sqlite` begins
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: one that has read first could not wait for another writer."""
    only_reads = connection.get_execution_options().get("only_reads", False)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")


def _name_the_trouble(context: ExceptionContext) -> RepositoryUnavailable | None:
    """SQLAlchemy raises what this returns instead of the driver's own error."""
    if not _is_unavailable(context):
        return None
    reason = one_sentence(str(context.original_exception))
    return RepositoryUnavailable(
        f"The repository database does not answer: {reason}. "
        "Check that it runs and what the connection concord_repository says; nothing is lost at the sites.",
        reason=reason,
    )


def _is_unavailable(context: ExceptionContext) -> bool:
    if context.connection is None or context.is_disconnect:
        return True
    error = context.original_exception
    return (
        isinstance(error, sqlite3.Error)
        and getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_UNAVAILABLE
    )
