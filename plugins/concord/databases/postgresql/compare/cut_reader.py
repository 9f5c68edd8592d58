"""A connection of a comparison: it stands in the site's cut, and answers one question after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from concord.databases.contract.compared_site import HeldRow, Sums
from concord.databases.postgresql.facts.connection import Connection, in_our_words, log_in, one, rows
from concord.databases.postgresql.facts.table_errors import of_table_read
from concord.databases.postgresql.rows.acquire import POSITION_QUERY
from concord.messages.errors import SiteUnavailable

#: Rows that the database hands over at once: few enough for memory, many enough for a far site.
ROWS_AT_ONCE = 5_000
#: The snapshot of a cut is gone with the transaction that exported it; the last one says so from version 18 on.
ENDED = (
    psycopg.errors.InvalidParameterValue,
    psycopg.errors.ObjectNotInPrerequisiteState,
    psycopg.errors.UndefinedObject,
)


@dataclass(frozen=True, slots=True)
class Where:
    """Which table in which cut of which site. `login` is a secret: it travels in pickled closures only."""

    site: str
    table: str
    login: str = field(repr=False)
    preamble: tuple[str, ...]
    position: str
    private: bool  #: no message tells a value


@dataclass
class CutReader:
    """Opens its connection at the first question, unless it is given one that holds the cut; closes what it opened."""

    where: Where
    connection: Connection | None = None
    opened: Connection | None = None

    def __enter__(self) -> CutReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self.opened is not None:
            self.opened.close()
        self.opened = None

    def sums(self, question: str) -> list[Sums]:
        """Raises a ConcordError."""
        with self._in_the_cut() as connection:
            return [Sums._make(row) for row in rows(connection, question)]

    def held(self, question: str) -> Iterator[HeldRow]:
        """Raises a ConcordError."""
        with self._in_the_cut() as connection, connection.cursor(name="concord_held") as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(question.encode())
            yield from map(HeldRow._make, cursor)

    @contextmanager
    def _in_the_cut(self) -> Iterator[Connection]:
        """For one question, whose error may be the table's own; that the cut has ended is not."""
        where = self.where
        try:
            connection = self._at_hand()
            with of_table_read(where.table, where.site, private=where.private):
                yield connection
        except psycopg.Error as error:
            said = in_our_words(error, where.site, private=where.private)
            raise said from (None if where.private else error)

    def _at_hand(self) -> Connection:
        if self.connection is not None:
            return self.connection
        if self.opened is None:
            self.opened = log_in(self.where.login)
            self._join(self.opened)
        return self.opened

    def _join(self, connection: Connection) -> None:
        """Prove that this is the cut (F06): two of them would make differences that are none."""
        try:
            found = one(connection, "BEGIN", *self.where.preamble, POSITION_QUERY)
        except ENDED as error:
            raise SiteUnavailable(f"{self.where.site}: the cut has ended; run it again") from error
        if found != (self.where.position,):
            raise SiteUnavailable(f"{self.where.site}: a reader could not join the cut; run it again")
