"""The streaming replication protocol: the log's messages come in, and confirmations go out.

The layout stands in the manual, "Streaming Replication Protocol".
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import closing, contextmanager
from struct import Struct
from typing import NamedTuple

import psycopg
from psycopg import pq

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import open_connections, session
from concord.databases.postgresql.facts.connection import begin_session, conninfo
from concord.databases.postgresql.facts.login_errors import could_not_connect
from concord.jobs.site import Credentials

_DATA, _ALIVE, _STATUS = Struct(">cQQq"), Struct(">cQqB"), Struct(">cQQQqB")
#: For how long a message is waited for, until the server is asked how far it has read, in seconds.
_ASK_AFTER = 0.2


class Read(NamedTuple):
    """How far the server has read its log."""

    number: int


@contextmanager
def log_connection(
    login: Credentials, application: str, **settings: str
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection that speaks the replication protocol. Raises SiteUnavailable or ConnectionRefused."""
    opened = conninfo(login, application, **settings)
    try:
        connection = psycopg.connect(opened, autocommit=True, prepare_threshold=None, replication="database")
        open_connections.note(connection)
        begin_session(connection, opened, session.first({**session.PINNED, **settings}))
    except psycopg.OperationalError as error:
        raise could_not_connect(login, error) from None
    with closing(connection):
        yield connection


class Frames:
    """The log of one slot, message by message, in the order of commits."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._pgconn, self._socket = connection.pgconn, connection.fileno()

    def start(self, slot: str, level: int, publication: str, *, binary: bool) -> None:
        """Begin after the level; earlier than what was confirmed the server never begins. Raises psycopg.Error."""
        options = (
            f"proto_version '1', publication_names {literal(publication)}, binary '{str(binary).lower()}'"
        )
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn(level)} ({options})'
        result = self._pgconn.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise psycopg.errors.error_from_result(result)

    def until(self, end: int) -> Iterator[bytes | Read | None]:
        """Messages, and how far the server has read. None when nothing waits on the socket.

        It ends when the server has read up to `end`. Raises psycopg.Error.
        """
        for message in self._messages(ask=True):
            yield message
            if isinstance(message, Read) and message.number >= end:
                return

    def coming(self) -> Iterator[bytes | Read | None]:
        """The same without an end. The server is not asked: it says how far it is once it has read on."""
        return self._messages(ask=False)

    def _messages(self, *, ask: bool) -> Iterator[bytes | Read | None]:
        while True:
            frame = self._next()
            if frame is None:
                yield None
                self._wait(ask=ask)
            elif frame[:1] == b"w":
                yield frame[_DATA.size :]
            elif frame[:1] == b"k":
                _, self.passed, _, reply = _ALIVE.unpack_from(frame)
                if reply:
                    self.confirm(self._confirmed)
                yield Read(self.passed)

    _confirmed = 0
    passed = 0  #: how far the server had read when it last said so

    def confirm(self, level: int, *, answer: bool = False) -> None:
        """Everything up to the level is on the subscriber's disk. `answer`: the server says how far it has read."""
        self._confirmed = level
        status = _STATUS.pack(b"r", level, level, level, 0, answer)
        self._pgconn.put_copy_data(status)
        while self._pgconn.flush():
            select.select([], [self._socket], [])

    def _next(self) -> bytes | None:
        size, frame = self._pgconn.get_copy_data(1)
        if size == 0:  # to read on for each message would make libpq move all that waits, each time
            self._pgconn.consume_input()
            size, frame = self._pgconn.get_copy_data(1)
        if size > 0:
            return bytes(frame)
        if size == 0:
            return None
        result = self._pgconn.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
        raise psycopg.OperationalError("the server has ended the stream of its log")

    def _wait(self, *, ask: bool) -> None:
        """Until something arrives, for a moment; the server is asked how far it is where it says nothing."""
        if not select.select([self._socket], [], [], _ASK_AFTER)[0] and ask:
            self.confirm(self._confirmed, answer=True)


def lsn(number: int) -> str:
    """`16/B374D848`, as PostgreSQL writes a place in its log."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def number(text: str) -> int:
    """The other way."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)
