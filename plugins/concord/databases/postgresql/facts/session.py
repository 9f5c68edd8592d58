"""The settings of each session, pinned where one could change how a value reads or when we wait (F20), and its first
statement.

They are sent with the login, and pinned once more by the first statement: a pooler may drop what a login sends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import ConnectionInfo

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import ownership, pooler

PINNED = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO,YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    "standard_conforming_strings": "on",
    "search_path": "",
    "client_min_messages": "warning",
    # A role's own defaults must not change what we rely on, or end what takes long.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "row_security": "off",  # rows hidden by a policy become an error, never a mass delete (F94)
    "jit": "off",  # compiling costs more than our statements gain
}

#: PostgreSQL 17 can end long transactions; earlier versions do not know the setting, so it is asked for first.
_UNHURRIED = (
    "SELECT pg_catalog.set_config('transaction_timeout', '0', false)"
    " WHERE pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL"
)


def options(settings: Mapping[str, str]) -> str:
    """The settings as libpq's parameter `options`."""
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def _escaped(value: str) -> str:
    return re.sub(r"([\\ ])", r"\\\1", value) if value else '""'


def pinned(settings: Mapping[str, str] = PINNED) -> str:
    """Query: pins the settings for the rest of the session. It takes no word from those that the session has."""
    pins = [
        f"pg_catalog.set_config({literal(name)}, {literal(value)}, false)" for name, value in settings.items()
    ]
    return f"SELECT {', '.join(pins)}, ({_UNHURRIED})"


#: Readers of Spark run it in their transaction, after what PostgreSQL wants first there.
PIN = pinned()


def first(settings: Mapping[str, str] = PINNED) -> str:
    """Query, the first one of every session: pins the settings. The last two columns are a stranger who owns one of
    Concord's schemas, if any, and the process of the server."""
    return f"{pinned(settings)}, ({ownership.SQUATTER}), pg_catalog.pg_backend_pid()"


#: That of all sessions but those which read the log.
FIRST = first()


def refuse_unfit(answer: Sequence[Any], info: ConnectionInfo, login: str) -> None:
    """By the answer to the first query. A pooler gives its clients another process than the server's, so that a direct
    connection costs no look behind it.

    Raises ConnectionRefused where one of Concord's schemas is somebody else's: objects in it would act with the rights
    of whoever reads them. Likewise where sessions share the server's; or OperationalError.
    """
    *_, squatter, process = answer
    if squatter is not None:
        raise ownership.squatted(squatter, info.dbname)
    if process != info.backend_pid:
        pooler.refuse_shared(login)
