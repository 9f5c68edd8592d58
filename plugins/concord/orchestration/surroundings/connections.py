"""Which Airflow connection becomes which login: complete, encrypted, and masked in every log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote, quote_plus

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret
from pydantic import SecretStr

from concord.jobs.site import ALLOWED_OPTIONS, Credentials, is_local
from concord.messages.errors import ConnectionRefused

#: conn_type is what Airflow makes of it: without the postgres provider it stores "generic".
_DIALECTS = {"postgres": "postgresql", "postgresql": "postgresql"}
_UNENCRYPTED = frozenset({"disable", "allow", "prefer"})


def airflow_connection(connection_id: str) -> Connection:
    """The connection as Airflow holds it, its password masked. Raises ConnectionRefused when there is none."""
    return _airflow_connections([connection_id])[connection_id]


def _airflow_connections(connection_ids: Iterable[str]) -> dict[str, Connection]:
    """Each of them. Raises ConnectionRefused that names all that are missing at once."""
    looked_up = {name: _looked_up(name) for name in connection_ids}
    found = {name: connection for name, connection in looked_up.items() if connection is not None}
    if missing := [name for name in looked_up if name not in found]:
        raise ConnectionRefused(_missing(missing))
    return found


def _looked_up(connection_id: str) -> Connection | None:
    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        return None
    mask_password(connection.password)
    return connection


def _missing(names: Sequence[str]) -> str:
    quoted = ", ".join(map(repr, names))
    variables = ", ".join(f"AIRFLOW_CONN_{name.upper()}" for name in names)
    if len(names) == 1:
        return (
            f"there is no Airflow connection {quoted}; create it (Admin, Connections, or {variables}), or name another"
            " one in the configuration"
        )
    return (
        f"there are no Airflow connections {quoted}; create each of them (Admin, Connections, or {variables}), or name"
        " others in the configuration"
    )


def mask_password(password: str | None) -> None:
    """Hide a password from Airflow's logs, in every form that a URL gives it."""
    if password:
        for form in {password, quote(password), quote(password, safe=""), quote_plus(password)}:
            mask_secret(form)


def dialect(connection: Connection) -> str:
    """Which database answers: the extra's `dialect`, else what the connection type says."""
    named = connection.extra_dejson.get("dialect") or connection.conn_type
    if named not in _DIALECTS:
        raise ConnectionRefused(
            f"connection {connection.conn_id!r}: the database is {named!r}, and Concord speaks PostgreSQL only;"
            ' set "dialect": "postgresql" in its extra'
        )
    return _DIALECTS[named]


def credentials(connection_id: str, *, insecure: bool = False) -> Credentials:
    """How one login reaches one site.

    `insecure` is the site's own word that it may be reached without encryption. Raises ConnectionRefused
    with everything that is missing or not allowed; no message holds a password.
    """
    (login,) = logins([(connection_id, insecure)])
    return login


def logins(asked: Sequence[tuple[str, bool]]) -> list[Credentials]:
    """The same for several connections, each with its site's `insecure`; all that are missing are named at once."""
    connections = _airflow_connections(name for name, _ in asked)
    return [_login(connections[name], insecure=insecure) for name, insecure in asked]


def _login(connection: Connection, *, insecure: bool) -> Credentials:
    database = dialect(connection)
    _require_complete(connection)
    return Credentials(
        dialect=database,
        host=connection.host or "",
        port=connection.port or 5432,
        database=connection.schema or "",
        user=connection.login or "",
        password=SecretStr(connection.password or ""),
        options=_encrypted(connection, options_of(connection), insecure=insecure),
        connection=connection.conn_id,
    )


def options_of(connection: Connection) -> dict[str, str]:
    """The libpq options of the extra. Raises ConnectionRefused for one that is not allowed."""
    options = {name: str(value) for name, value in connection.extra_dejson.items() if name != "dialect"}
    if refused := sorted(options.keys() - ALLOWED_OPTIONS):
        raise ConnectionRefused(
            f"connection {connection.conn_id!r}: its extra has {', '.join(refused)}, which is not allowed;"
            f" allowed are dialect, {', '.join(sorted(ALLOWED_OPTIONS))}"
        )
    return options


def _require_complete(connection: Connection) -> None:
    needed = {"host": connection.host, "schema (the database)": connection.schema, "login": connection.login}
    if missing := [name for name, value in needed.items() if not value]:
        raise ConnectionRefused(
            f"connection {connection.conn_id!r} has no {' and no '.join(missing)}; fill it in"
        )


def _encrypted(connection: Connection, options: dict[str, str], *, insecure: bool) -> dict[str, str]:
    """Refuse what would send rows in the clear to another machine, unless the site says `insecure`."""
    if is_local(connection.host or ""):
        return options
    if insecure:
        return {"sslmode": "prefer", **options}
    if options.get("sslmode") in _UNENCRYPTED:
        raise ConnectionRefused(
            f"connection {connection.conn_id!r}: sslmode {options['sslmode']} may send rows unencrypted to"
            f" {connection.host}; use verify-full, or say insecure: true for the site"
        )
    return options
