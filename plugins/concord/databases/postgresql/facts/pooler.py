"""Whether a pooler gives each of its sessions a server of its own until it ends.

PgBouncer in transaction or statement mode does not. A statement may then find the settings of another session. The
sure sign: two sessions at once have one process of the server, or one session has two.
"""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from concord.messages.errors import ConnectionRefused

#: How often a session looks for its process. A pool may have others that are idle, and gives each out in its turn.
ROUNDS = 8

#: PgBouncer's words about a transaction in statement mode.
_NO_TRANSACTIONS = "statement pooling"


def refuse_shared(login: str) -> None:
    """Raises ConnectionRefused where the sessions behind the connection string share the server's; else
    OperationalError. One look serves a process."""
    _look(make_conninfo(login, application_name="concord pooler"))


@lru_cache(maxsize=64)
def _look(login: str) -> None:
    with closing(_open(login)) as session, closing(_open(login)) as other:
        for _ in range(ROUNDS):
            before = _process(session)
            try:
                other.execute("BEGIN")
                held = _process(other)
            except psycopg.OperationalError as error:
                if _NO_TRANSACTIONS not in str(error):
                    raise
                raise _shared(login) from None
            if held == before or _process(session) != before:
                raise _shared(login)
            other.execute("COMMIT")


def _open(login: str) -> psycopg.Connection[Any]:
    return psycopg.connect(login, autocommit=True, prepare_threshold=None)


def _process(connection: psycopg.Connection[Any]) -> int:
    ((process,),) = connection.execute("SELECT pg_catalog.pg_backend_pid()").fetchall()
    return int(process)


def _shared(login: str) -> ConnectionRefused:
    to = conninfo_to_dict(login)
    return ConnectionRefused(
        f"the pooler at {to['host']}:{to['port']} shares the server's sessions between clients (transaction or"
        f" statement pooling), so that no setting of a session is sure; set pool_mode = session for the database"
        f" {to['dbname']} there, or let the connection lead to the database itself"
    )
