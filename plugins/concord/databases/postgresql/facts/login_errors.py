"""Ours for a login that failed: whether mending the connection or waiting helps, and what there is to do."""

from __future__ import annotations

import psycopg

from concord.databases.contract.quoting import quote
from concord.jobs.site import Credentials
from concord.messages.connection_words import one_sentence
from concord.messages.errors import ConcordError, ConnectionRefused, PrivilegeMissing, SiteUnavailable

_AGAIN = "the next run tries again"
_CONNECTIONS = f"docs/sizing.md says how many connections Concord wants; {_AGAIN}"

#: What a server or a pooler answers that has no room, and what gives it.
_FULL = {
    "too many connections for role": f"ALTER ROLE {{user}} CONNECTION LIMIT … allows it more: {_CONNECTIONS}",
    "too many connections for database": f"ALTER DATABASE {{database}} CONNECTION LIMIT … allows more: {_CONNECTIONS}",
    "too many clients already": f"Raise max_connections of that server: {_CONNECTIONS}",
    "connection slots are reserved": f"Raise max_connections of that server: {_CONNECTIONS}",
    "max_wal_senders": f"Raise max_wal_senders of that server: {_CONNECTIONS}",
    "max_client_conn": f"Raise max_client_conn of that pooler: {_CONNECTIONS}",
    "query_wait_timeout": f"Raise default_pool_size of that pooler: {_CONNECTIONS}",
}

#: What a server answers that is about to let logins in, or was.
_SOON = ("is starting up", "is shutting down", "in recovery mode", "not yet accepting connections")

#: What no waiting changes, and the remedy.
_REFUSED = {
    "password authentication failed": "Mend {known_as}.",
    "no pg_hba.conf entry": "Mend {known_as}.",
    "does not exist": "Mend {known_as}.",
    "certificate": "Mend {known_as}.",
    "SSL": "Mend {known_as}.",
    "not permitted to log in": "ALTER ROLE {user} LOGIN lets it in.",
    "not currently accepting connections": "ALTER DATABASE {database} ALLOW_CONNECTIONS true lets it in.",
    "parameter: replication": "Let {known_as} lead to the server itself: that pooler passes no log on.",
    "unsupported startup parameter": "Set ignore_startup_parameters = options in that PgBouncer.",
}


def could_not_connect(credentials: Credentials, error: psycopg.OperationalError) -> ConcordError:
    """SiteUnavailable where waiting may help; else ConnectionRefused or PrivilegeMissing."""
    said = one_sentence(str(error))
    names = {
        "user": quote(credentials.user),
        "database": quote(credentials.database),
        "known_as": credentials.known_as,
    }
    if "CONNECT privilege" in str(error):
        grant = "GRANT CONNECT ON DATABASE {database} TO {user}".format(**names)
        return PrivilegeMissing(f"{said}. Run `provision`, or {grant}")
    for words, remedy in _FULL.items():
        if words in said:
            return SiteUnavailable(f"{said}. {remedy.format(**names)}.")
    if any(words in said for words in _SOON):
        return SiteUnavailable(f"{said}. {_AGAIN[0].upper()}{_AGAIN[1:]}.")
    for words, remedy in _REFUSED.items():
        if words in said:
            return ConnectionRefused(f"{said}. {remedy.format(**names)}")
    return SiteUnavailable(f"{said}. Start that database, or mend {credentials.known_as}; {_AGAIN}.")
