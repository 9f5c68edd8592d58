"""Connections to a site, and statements on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.json import set_json_loads

from concord.databases.postgresql.facts import open_connections, session
from concord.databases.postgresql.facts.any_json import parse_json
from concord.databases.postgresql.facts.any_time import read_any_time
from concord.databases.postgresql.facts.login_errors import could_not_connect
from concord.databases.postgresql.facts.refusal import told
from concord.databases.postgresql.facts.table_errors import TRIES_AGAIN, is_of_a_table, remedy
from concord.jobs.site import ALLOWED_OPTIONS, Credentials, is_local
from concord.messages.errors import (
    ConcordError,
    ConnectionRefused,
    PrivilegeMissing,
    SiteUnavailable,
    WriteContended,
)

Connection = psycopg.Connection[Any]
T = TypeVar("T")

#: Where PostgreSQL refuses to read rows that a policy could hide; its message is in the server's own language.
_HIDES_ROWS = "check_enable_rls"


def conninfo(credentials: Credentials, application: str = "concord", **settings: str) -> str:
    """libpq's connection string, with more settings of the session. Raises ConnectionRefused for an option that is
    not allowed."""
    refused = sorted(set(credentials.options) - ALLOWED_OPTIONS)
    if refused:
        raise ConnectionRefused(
            f"connection to {credentials.host}: option {', '.join(refused)} is not allowed;"
            f" allowed are {', '.join(sorted(ALLOWED_OPTIONS))}"
        )
    return make_conninfo(
        host=credentials.host,
        port=credentials.port,
        dbname=credentials.database,
        user=credentials.user,
        password=credentials.password.get_secret_value() or None,
        application_name=application,
        client_encoding="UTF8",
        # A peer that is gone without a word is noticed within two minutes.
        keepalives_idle=30,
        keepalives_interval=10,
        keepalives_count=3,
        tcp_user_timeout=120_000,
        options=session.options({**session.PINNED, **settings}),
        **{"connect_timeout": "10", "sslmode": _default_sslmode(credentials), **credentials.options},
    )


def _default_sslmode(credentials: Credentials) -> str:
    """Encrypted and verified, except towards this very machine."""
    return "prefer" if is_local(credentials.host) else "verify-full"


def connect(credentials: Credentials, application: str = "concord") -> Connection:
    """An open connection, each statement its own transaction.

    Raises SiteUnavailable (transient) or ConnectionRefused (permanent).
    """
    try:
        return log_in(conninfo(credentials, application))
    except psycopg.OperationalError as error:
        raise could_not_connect(credentials, error) from None


def log_in(login: str) -> Connection:
    """The same with a connection string. Raises OperationalError, or ConnectionRefused of `refuse_unfit`."""
    # No statement of ours has parameters, and few come twice: to prepare them would be one more round trip.
    connection = psycopg.connect(login, autocommit=True, prepare_threshold=None)
    open_connections.note(connection)
    set_json_loads(parse_json, connection)
    read_any_time(connection)
    begin_session(connection, login, session.FIRST)
    return connection


def begin_session(connection: Connection, login: str, first: str) -> None:
    """Pin its settings, or close it. Raises as `log_in`."""
    try:
        session.refuse_unfit(one(connection, first), connection.info, login)
    except (psycopg.Error, ConnectionRefused):
        connection.close()
        raise


def asked_again(at_hand: Callable[[], Connection], ask: Callable[[Connection], T]) -> T:
    """The answer to a question that may be asked twice. It is asked on the connection at hand, which may have ended
    since it was last used, then on another one. Raises what asking raises."""
    connection = at_hand()
    try:
        return ask(connection)
    except psycopg.OperationalError:
        if not connection.closed:
            raise
    return ask(at_hand())


def connect_both(
    one: Callable[[], Connection], other: Callable[[], Connection]
) -> tuple[Connection, Connection]:
    """Two connections, logged in to at the same time. Raises the first one's error first; then neither is open."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        logging_in = threads.submit(other)
        try:
            connection = one()
        except BaseException:
            with suppress(ConcordError, psycopg.Error):
                logging_in.result().close()
            raise
    try:
        return connection, logging_in.result()
    except BaseException:
        connection.close()
        raise


def in_our_words(error: psycopg.Error, where: str, *, private: bool = False) -> ConcordError:
    """A database error as one of ours, by SQLSTATE: whether a retry can help is what matters."""
    state, said = error.sqlstate or "", told(error, private=private)
    if error.diag.source_function == _HIDES_ROWS:
        return PrivilegeMissing(
            f"{where}: {said}. Row-level security can hide rows, which would read as deletes, and `provision` refuses"
            " it: disable it (ALTER TABLE … DISABLE ROW LEVEL SECURITY)."
        )
    if state == "42501":
        return PrivilegeMissing(f"{where}: {said}. Run `provision` to grant what the role needs.")
    if state in {"40P01", "40001", "55P03", "23505"}:
        return WriteContended(f"{where}: {said}{TRIES_AGAIN}")
    if not state or state.startswith(("08", "57", "53")):
        return SiteUnavailable(f"{where}: {said}{TRIES_AGAIN}")
    more = f". {remedy(error)}" if is_of_a_table(error) else ""
    return ConcordError(f"{where}: {said} (SQLSTATE {state}){more}")


def run(connection: Connection, *statements: str) -> int:
    """Execute statements that carry no parameters, in one round trip; the affected rows of the last one.

    Between sites a round trip takes longer than most statements. Outside of a transaction, all of them are one.
    """
    return _executed(connection, statements)[-1].rowcount


def counts(connection: Connection, *statements: str) -> list[int]:
    """The affected rows of each of such statements."""
    return [each.rowcount for each in _executed(connection, statements)]


def rows(connection: Connection, *statements: str) -> list[tuple[Any, ...]]:
    """All rows of the last one of such statements."""
    return _executed(connection, statements)[-1].rows


def one(connection: Connection, *statements: str) -> tuple[Any, ...]:
    """The single row of the last one of such statements."""
    (row,) = rows(connection, *statements)
    return row


def every(connection: Connection, *statements: str) -> list[list[tuple[Any, ...]]]:
    """The rows of each of such statements; of one that gives none, none."""
    return [each.rows for each in _executed(connection, statements)]


class _Result(NamedTuple):
    rowcount: int
    rows: list[Any]


def _executed(connection: Connection, statements: Sequence[str]) -> list[_Result]:
    with connection.cursor() as cursor:
        cursor.execute(";\n".join(statements).encode())
        results = [_result(cursor)]
        while cursor.nextset():
            results.append(_result(cursor))
    return results


def _result(cursor: psycopg.Cursor[Any]) -> _Result:
    return _Result(cursor.rowcount, [] if cursor.description is None else cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Transaction:
    """One that is open, and what need not wait for an answer at its begin or its end."""

    answered: list[list[tuple[Any, ...]]]  #: the rows of each statement that it began with
    last: list[str] = field(default_factory=list)  #: statements that are sent together with the COMMIT


class ConnectionEnded(psycopg.OperationalError):
    """The connection had ended before the transaction began: nothing was done, and another connection may do it."""


@contextmanager
def in_transaction(connection: Connection, *first: str) -> Iterator[Transaction]:
    """One transaction, which begins with these statements in one round trip; undone when the block raises, or one of
    its last statements. Raises ConnectionEnded.
    """
    if connection.closed:
        raise ConnectionEnded("the connection has ended")
    assert connection.info.transaction_status is TransactionStatus.IDLE, "a transaction in a transaction"
    try:
        try:
            _, *answered = every(connection, "BEGIN", *first)
        except psycopg.OperationalError as error:
            if connection.closed:
                raise ConnectionEnded(str(error)) from error
            raise
        yield (transaction := Transaction(answered))
        run(connection, *transaction.last, "COMMIT")
    except BaseException:
        with suppress(psycopg.Error):  # what went wrong first must be told
            run(connection, "ROLLBACK")
        raise


def answers(
    connection: psycopg.Connection[Any], *queries: str, row_factory: Any = tuple_row
) -> list[list[Any]]:
    """The rows of each query, all in one round trip; of a statement that gives none, none."""
    if not queries:
        return []
    with connection.cursor(row_factory=row_factory) as cursor:
        cursor.execute(";\n".join(queries).encode())
        found = [_result(cursor).rows]
        while cursor.nextset():
            found.append(_result(cursor).rows)
    return found
