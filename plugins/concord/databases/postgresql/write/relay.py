"""Relay: rows of one PostgreSQL are staged in another as the one server writes them and the other reads them.

Nobody takes a row apart on the way (COPY, binary), which is as fast as psql in a pipe. For changes of which nothing
is to be computed: whatever is, travels through Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import psycopg
from psycopg.abc import PQGen
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Wait

from concord.databases.contract.quoting import qualified
from concord.databases.contract.reading import Part, Relayed
from concord.databases.postgresql.facts.connection import Connection, in_our_words, log_in, one
from concord.databases.postgresql.facts.own_schema import STAGING
from concord.databases.postgresql.facts.refusal import told
from concord.databases.postgresql.facts.table_errors import is_of_a_table, is_of_size, remedy
from concord.databases.postgresql.write import too_large_to_send, untranslatable
from concord.messages.errors import ConcordError, LinkFailed, SiteUnavailable

#: Bytes that are handed on at once: each call costs as much as some rows.
BLOCK = 1 << 16


class SourceFailed(Exception):
    """The source's COPY has failed. The target's is told so, and writes it to its log: no more than this."""


class Relay:
    """Stages one part after the other, between the same two connections: each login takes several round trips.

    They are opened for the first part, in the cut that all parts of a link are read in, unless both are given.
    The source's then holds that cut. Closed are those that were opened.
    """

    def __init__(self, connections: tuple[Connection, Connection] | None = None) -> None:
        self._connections = connections
        self._opened = ExitStack()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __call__(self, part: Part, attempt: int) -> Relayed:
        """Stage the rows of one part under the number of the attempt, all of them or none.

        Raises SiteUnavailable, PrivilegeMissing, WriteContended or LinkFailed, naming the table; then this relay has
        ended.
        """
        try:
            if self._connections is None:
                self._connections = self._open(part)
            return _copy(*self._connections, part, attempt)
        except SourceFailed as ended:
            failed = ended.__cause__
        except psycopg.Error as error:
            failed = error
        assert isinstance(failed, psycopg.Error), "nothing else stops a COPY"
        # Spark logs what an error came from, and PostgreSQL's own words quote values.
        raise _worded(failed, part) from (None if part.private else failed)

    def _open(self, part: Part) -> tuple[Connection, Connection]:
        source, target = (self._log_in(login) for login in (part.reading.login, part.login))
        _join(source, part)
        return source, target

    def _log_in(self, login: str) -> Connection:
        """Closed without a word at the end: what was read needs no commit."""
        connection = log_in(login)
        self._opened.callback(connection.close)
        return connection


def _worded(error: psycopg.Error, part: Part) -> ConcordError:
    """In one line, since an executor's error comes as text. An error that nobody knows may be over at the next
    run."""
    table = part.table.replace("\n", " ")
    found = in_our_words(error, table, private=part.private)
    if type(found) is not ConcordError:
        return found
    why = told(error, private=part.private)
    if isinstance(error, psycopg.errors.UntranslatableCharacter):
        return LinkFailed(f"{table}: {untranslatable.named(part, why)}")
    if is_of_size(error):
        return LinkFailed(f"{table}: {too_large_to_send.named(part, why)}")
    more = f". {remedy(error)}" if is_of_a_table(error) else ""
    return LinkFailed(f"{table}: its rows could not be moved: {why}{more}")


def _join(source: Connection, part: Part) -> None:
    """Read in the link's cut, and prove it: a torn read would send one version's row under another's (F06)."""
    reading = part.reading
    try:
        found = one(source, "BEGIN", *reading.preamble, reading.position_query or "SELECT NULL")
    except psycopg.Error as error:
        said = told(error, private=part.private)
        raise SiteUnavailable(f"{part.table}: the link's cut has ended: {said}") from error
    if found != (reading.position,):
        raise SiteUnavailable(f"{part.table}: a reader could not join the link's cut")


def _copy(source: Connection, target: Connection, part: Part, attempt: int) -> Relayed:
    staging = qualified(STAGING, part.relation)
    send = f"COPY ({_cast(part, attempt)}) TO STDOUT (FORMAT binary)"
    names = ", ".join([*(name for name, _ in part.columns), *_marks(part, attempt)])
    receive = f"COPY {staging} ({names}) FROM STDIN (FORMAT binary)"
    with target.cursor() as writing:
        with writing.copy(receive.encode()) as staged:
            size = pass_on(source, send, staged)
        return Relayed(attempt, writing.rowcount, _removals(target, part, attempt), size)


def _removals(target: Connection, part: Part, attempt: int) -> int:
    """To ask is a round trip more: few rows need not be weighed."""
    if not part.weighed:
        return 0
    staging = qualified(STAGING, part.relation)
    counted = f"SELECT count(*) FROM {staging} WHERE attempt = {attempt} AND (deleted OR out_of_scope)"
    return int(one(target, counted)[0])


def pass_on(source: Connection, send: str, taken: psycopg.Copy) -> int:
    """Bytes that went from the one COPY into the other. Raises SourceFailed."""
    size = 0
    try:
        with source.cursor() as reading, reading.copy(send.encode()):
            for block in _blocks(source):
                taken.write(block)
                size += len(block)
    except psycopg.Error as error:
        raise SourceFailed("the source sends no more") from error
    return size


def _cast(part: Part, attempt: int) -> str:
    """Every column in staging's own type, whatever the query makes of it: binary, another one would be misread."""
    columns = [f"q.{name}::{kind}" for name, kind in part.columns]
    return f"SELECT {', '.join([*columns, *_marks(part, attempt).values()])} FROM ({part.query}) q"


def _marks(part: Part, attempt: int) -> dict[str, str]:
    """Staging's two marks beside row and version: every row applies unless its query says otherwise, or the write
    finds otherwise."""
    told = {"attempt": f"{attempt}::int8"}
    if part.judged and "verdict" not in dict(part.columns):
        told["verdict"] = "'apply'::text"
    return told


def _blocks(source: Connection) -> Iterator[bytes]:
    """All that the source's COPY sends, its own rows joined. Raises psycopg.Error."""
    more = True
    while more:
        block, more = source.wait(_block(source.pgconn))
        yield block


def _block(source: PGconn) -> PQGen[tuple[bytes, bool]]:
    """One block, and whether the COPY goes on. psycopg would wait for each row by itself, which costs as much
    again."""
    waiting: list[bytes | bytearray | memoryview] = []
    size = 0
    while size < BLOCK:
        length, row = source.get_copy_data(1)
        if length < 0:
            _refuse_failed((yield from fetch_many(source)))
            return b"".join(waiting), False
        if length:
            waiting.append(row)
            size += length
            continue
        while not (yield Wait.R):
            continue
        source.consume_input()
    return b"".join(waiting), True


def _refuse_failed(results: Sequence[PGresult]) -> None:
    """Raises psycopg.Error unless the COPY has told that it sent all."""
    for result in results:
        if result.status != ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result)
    if not results:
        raise psycopg.OperationalError("the COPY did not tell how it ended")
