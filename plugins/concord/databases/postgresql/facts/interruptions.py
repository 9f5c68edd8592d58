"""The memory of how each table is captured: an interruption shows, even once it was repaired.

A table that leaves its publication and comes back has another identity there, as has one whose triggers were made
anew. Whatever its users wrote in between was captured by nobody. `provision` counts such interruptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.own_schema import SCHEMA

STATEMENTS = [
    # `source` is a publication, or the triggers of replications; without an `identity` the table is not captured by it.
    """
CREATE TABLE IF NOT EXISTS concord.captured_by (
  source text,
  relation oid,
  identity text,
  interruptions integer NOT NULL DEFAULT 0,
  PRIMARY KEY (source, relation))""",
]


class Source(NamedTuple):
    """One way in which tables are captured."""

    name: str
    members: str  #: query: the tables that it captures now (`relation`), and as what (`identity`)


class Captured(NamedTuple):
    """One table of a source."""

    oid: int
    schema: str
    name: str
    interruptions: int  #: since it was first captured
    unbroken: bool  #: it is captured as when it was provisioned

    @property
    def is_own(self) -> bool:
        """Is the table Concord's?"""
        return self.schema == SCHEMA

    @property
    def told(self) -> str:
        return f"{self.schema}.{self.name}"


def published(name: str) -> Source:
    """Each table's membership in the publication as it is: whatever ends or narrows it gives it another identity."""
    return Source(
        name,
        "SELECT r.prrelid AS relation, concat_ws('/', p.oid, p.xmin, r.oid) AS identity FROM pg_publication_rel r"
        f" JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = {literal(name)}",
    )


def counted(source: Source, tables: Sequence[int], own: Sequence[str] = ()) -> Iterator[str]:
    """Statements before its tables are provisioned: each that was not captured all the while counts one more.

    `tables` are users' by oid; of one that was never captured nobody knows the past. `own` are Concord's, as SQL.
    """
    name, oids = literal(source.name), [f"{oid}::oid" for oid in tables]
    every = [*oids, *(f"to_regclass({literal(each)})::oid" for each in own)]
    if not every:
        return
    here = f"SELECT m.identity FROM ({source.members}) m WHERE m.relation = {{}}"
    if oids:
        yield (
            "INSERT INTO concord.captured_by (source, relation, identity)"
            f" SELECT {name}, x, ({here.format('x')}) FROM unnest(ARRAY[{', '.join(oids)}]) x ON CONFLICT DO NOTHING"
        )
    yield (
        "UPDATE concord.captured_by c SET interruptions = interruptions + 1"
        f" WHERE source = {name} AND relation = ANY (ARRAY[{', '.join(every)}])"
        f" AND (identity IS NULL OR identity IS DISTINCT FROM ({here.format('c.relation')}))"
    )


def remembered(source: Source) -> Iterator[str]:
    """Statements once they are: its tables are captured without interruption from here on."""
    name = literal(source.name)
    yield (
        f"INSERT INTO concord.captured_by AS c (source, relation, identity) SELECT {name}, m.relation, m.identity"
        f" FROM ({source.members}) m ON CONFLICT (source, relation) DO UPDATE SET identity = excluded.identity"
        " WHERE c.identity IS DISTINCT FROM excluded.identity"
    )
    yield (
        f"UPDATE concord.captured_by SET identity = NULL WHERE source = {name} AND identity IS NOT NULL"
        f" AND relation NOT IN (SELECT m.relation FROM ({source.members}) m)"
    )


def are_remembered(connection: Connection) -> bool:
    """Is the site of a format that has this memory?"""
    return bool(rows(connection, "SELECT 1 WHERE to_regclass('concord.captured_by') IS NOT NULL"))


def read(connection: Connection, source: Source) -> list[Captured]:
    """The tables that it captures now. The site is of the present format."""
    found = rows(
        connection,
        "SELECT m.relation::bigint, n.nspname::text, t.relname::text, coalesce(c.interruptions, 0),"
        f" coalesce(c.identity = m.identity, false) FROM ({source.members}) m JOIN pg_class t ON t.oid = m.relation"
        " JOIN pg_namespace n ON n.oid = t.relnamespace LEFT JOIN concord.captured_by c"
        f" ON c.source = {literal(source.name)} AND c.relation = m.relation ORDER BY 2, 3",
    )
    return [Captured(*each) for each in found]


def deviations(captured: Sequence[Captured]) -> Iterator[str]:
    """Tables whose capture was interrupted since they were provisioned, each one line."""
    for each in captured:
        if not each.unbroken:
            yield (
                f"{each.told} was not captured for a while (its publication or its triggers were altered, or it left"
                " them and came back), so that changes of its users are missing"
            )
