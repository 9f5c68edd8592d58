"""The open connections of this process: the one who ends its work must be able to end their waits, in any thread."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

import psycopg

_OPEN: WeakSet[psycopg.Connection[Any]] = WeakSet()
#: Seconds until a database that was asked to cancel must have heard it.
_PATIENCE = 2.0


def note(connection: psycopg.Connection[Any]) -> None:
    """Remember the connection for as long as anybody holds it."""
    _OPEN.add(connection)


def cancel() -> None:
    """Cancel what every connection does at this moment; none is closed. Whoever waits for one gets QueryCanceled."""
    for connection in _noted():
        cancel_one(connection)


def cancel_one(connection: psycopg.Connection[Any]) -> None:
    """Cancel what this connection does at this moment; it is not closed."""
    if not connection.closed:
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=_PATIENCE)


def _noted() -> list[psycopg.Connection[Any]]:
    """Another thread may log in meanwhile. No lock: a signal's handler asks, in a thread that may hold it."""
    while True:
        try:
            return list(_OPEN)
        except RuntimeError:  # it has changed while it was listed
            continue
