"""How rows are read for a link or a comparison, and how those that go straight are told to be passed on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts that executors need to read one DataFrame over ADBC: the address, the first statements, one query a
    partition.

    `login` is a secret: it travels inside pickled closures only, never in options, plans or logs.
    """

    login: str = field(repr=False)
    preamble: tuple[str, ...]
    queries: tuple[str, ...]
    schema: str  #: Spark DDL of the rows
    position: str | None = None  #: what `position_query` must answer, or the reader stands in another cut
    position_query: str = ""

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and Spark types."""
        return ddl_columns(self.schema)


def ddl_columns(ddl: str) -> list[tuple[str, str]]:
    """Names and types of what Spark's DDL declares."""
    return [(name, kind) for name, kind in (column.split() for column in ddl.split(","))]


#: Changed rows that one reader takes before a second one is worth its login.
ROWS_PER_READER = 20_000
#: Tables likewise: each takes some round trips.
TABLES_PER_READER = 4


def readers_for(rows: int, most: int, tables: int = 1) -> int:
    """How many readers share so many changed rows of so many tables."""
    return max(1, min(most, max(rows // ROWS_PER_READER, tables // TABLES_PER_READER) + 1))


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one query that go straight from their database into the staging of another one of its kind."""

    table: str
    reading: Reading
    query: str
    login: str = field(repr=False)  #: a secret, as that of `reading`
    relation: str  #: where they are staged
    #: What is staged of a row: names, and the types that staging has for them.
    columns: tuple[tuple[str, str], ...]
    private: bool = False  #: no message tells a value
    weighed: bool = True  #: a brake may have to know how many rows would take a row away
    judged: bool = (
        True  #: staging tells what becomes of each row; a snapshot's rows are its content, without more
    )
    key: tuple[str, ...] = ()  #: columns by which a message names a row; none where it must not


@dataclass(frozen=True, slots=True)
class Relayed:
    """The result of one attempt: its staged rows."""

    attempt: int
    rows: int
    removals: int  #: how many of them may take a row away; 0 where nobody weighs them
    bytes: int


class Relay(AbstractContextManager["Relay"], Protocol):
    """Stages parts, one after the other."""

    def __call__(self, part: Part, attempt: int) -> Relayed:
        """Stage a part under the number of the attempt, all of its rows or none. Raises a ConcordError; then the
        relay has ended."""
