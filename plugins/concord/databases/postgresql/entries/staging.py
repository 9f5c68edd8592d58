"""Where operations wait for their replay: one temporary table for each replicated one, and one for entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from concord.databases.postgresql.entries import staged_row
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.log.published import Kind, Published

ENTRIES = "pg_temp.concord_entry"


@dataclass(frozen=True, slots=True)
class ReplicatedTable:
    """One table at the subscriber, its columns in the order in which the log brings them."""

    name: str
    place: int
    table: Table
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    before: tuple[str, ...]  #: the columns whose values before an operation are staged
    kind: Kind = Kind.ROWS
    has_decided: bool = False  #: operations on some of its keys are passed over

    @property
    def staged(self) -> str:
        return f"pg_temp.concord_operation_{self.place}"

    @property
    def decided(self) -> str:
        """The temporary table of those keys."""
        return f"concord_decided_{self.place}"

    @property
    def chosen(self) -> str:
        """The temporary table of the keys that a person decides about now."""
        return f"concord_chosen_{self.place}"

    @property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(self.table.column(name) for name in self.key)


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of a replication at both ends."""

    published: Published
    tables: tuple[ReplicatedTable, ...]

    def of(self, *kinds: Kind) -> tuple[ReplicatedTable, ...]:
        """Those of these kinds, in the order of the replication set."""
        return tuple(each for each in self.tables if each.kind in kinds)


def create(connection: Connection, layout: Layout) -> None:
    """Temporary tables need no log, and end with the session."""
    run(
        connection,
        "CREATE TEMPORARY TABLE concord_entry (seq bigint, last bigint, number bigint, at timestamptz, size bigint)",
        *(_table(each) for each in layout.tables),
    )


def _table(table: ReplicatedTable) -> str:
    values = [f"c{place} {column.type.sql}" for place, column in enumerate(table.columns)]
    before = [f"o{place} {table.table.column(name).type.sql}" for place, name in enumerate(table.before)]
    columns = ["seq bigint", 'operation "char"', "kept varbit", *values, *before]
    return f"CREATE TEMPORARY TABLE concord_operation_{table.place} ({', '.join(columns)})"


def fill(connection: Connection, layout: Layout, batch: Gathered) -> None:
    """Add a batch to what waits."""
    form = "binary" if layout.published.binary else "text"
    for place, rows in batch.rows.items():
        _copy(connection, layout.tables[place].staged, form, rows)
    if batch.entries:
        _copy(connection, ENTRIES, "binary", batch.entries)


def _copy(connection: Connection, table: str, form: str, rows: Iterable[bytes]) -> None:
    body = b"".join(rows)
    if form == "binary":
        body = staged_row.SIGNATURE + body + staged_row.TRAILER
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT {form})".encode()) as copy:
        copy.write(body)


def clear(connection: Connection, layout: Layout, last: int) -> None:
    """Take away what was replayed; an entry of which only a part has come stays."""
    staged = [ENTRIES, *(each.staged for each in layout.tables)]
    run(connection, *(f"DELETE FROM {each} WHERE seq <= {last}" for each in staged))
