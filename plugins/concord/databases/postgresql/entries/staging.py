"""Where operations wait for their replay: one temporary table for each replicated one, and one for entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from concord.databases.postgresql.entries import staged_row
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.entries.mapped_lines import TableMapping, mapped_lines
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.log.published import Kind, Published
from concord.jobs.kept_history import KeptHistory
from concord.tables.row_mapping import Mapper

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
    history: KeptHistory | None = None  #: every version is kept; None: the newest alone
    has_decided: bool = False  #: operations on some of its keys are passed over
    mapping: TableMapping | None = None  #: where the sites keep it differently, in more than names

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
    def compared(self) -> bool:
        """Are more values than the key's staged of the row before an operation?"""
        return len(self.before) > len(self.key)

    @property
    def refused(self) -> str:
        """SQL of a staged row `s`: it does not fit the mapping."""
        return "false" if self.mapping is None else "s.refused IS NOT NULL"

    def after(self, row: str, place: int) -> str:
        """SQL of the value after the operation."""
        return f"{row}.c{place}{self._cast(self.columns[place])}"

    def new(self, row: str, name: str) -> str:
        """The same, of a column by its name."""
        return self.after(row, [column.name for column in self.columns].index(name))

    def old(self, row: str, name: str) -> str:
        """SQL of the value before it."""
        return f"{row}.o{self.before.index(name)}{self._cast(self.table.column(name))}"

    def staged_type(self, column: Column) -> str:
        """A text that a mapping has made becomes a value only when its entry is replayed: it may be none.

        So does a domain's. Its rule may be this site's own, and the entries before are replayed first.
        """
        return "text" if self._cast(column) else column.type.sql

    def _cast(self, column: Column) -> str:
        made = self.mapping is not None and column.name in self.mapping.rows.changed
        return f"::{column.type.sql}" if made or column.type.kind == "d" else ""

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

    @property
    def read(self) -> Layout:
        """Without the tables that are being copied, of which no operation is read."""
        places = set(self.published.places.values())
        return Layout(self.published, tuple(each for each in self.tables if each.place in places))


def create_entries(connection: Connection) -> None:
    """Temporary tables need no log, and end with the session."""
    run(
        connection,
        "CREATE TEMPORARY TABLE concord_entry (seq bigint, last bigint, number bigint, at timestamptz, size bigint)",
    )


def create(connection: Connection, tables: Iterable[ReplicatedTable]) -> None:
    """The tables of these tables' operations, likewise temporary."""
    run(connection, *map(_table, tables))


def _table(table: ReplicatedTable) -> str:
    values = [f"c{place} {table.staged_type(column)}" for place, column in enumerate(table.columns)]
    olds = map(table.table.column, table.before)
    before = [f"o{place} {table.staged_type(column)}" for place, column in enumerate(olds)]
    refused = [] if table.mapping is None else ["refused text"]
    columns = ["seq bigint", 'operation "char"', "kept varbit", *values, *before, *refused]
    return f"CREATE TEMPORARY TABLE concord_operation_{table.place} ({', '.join(columns)})"


def fill(connection: Connection, layout: Layout, batch: Gathered, mapper: Mapper) -> None:
    """Add a batch to what waits."""
    form = "binary" if layout.published.binary else "text"
    for place, rows in batch.rows.items():
        table = layout.tables[place]
        _copy(connection, table.staged, form, _mapped(table, rows, mapper))
    if batch.entries:
        _copy(connection, ENTRIES, "binary", batch.entries)


def _mapped(table: ReplicatedTable, rows: Sequence[bytes], mapper: Mapper) -> Sequence[bytes]:
    """Tables that are the same at both sites go straight."""
    return rows if table.mapping is None else mapped_lines(table.mapping, rows, mapper)


def _copy(connection: Connection, table: str, form: str, rows: Iterable[bytes]) -> None:
    body = b"".join(rows)
    if form == "binary":
        body = staged_row.SIGNATURE + body + staged_row.TRAILER
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT {form})".encode()) as copy:
        copy.write(body)


def clear(connection: Connection, tables: Iterable[ReplicatedTable], last: int) -> None:
    """Take away what was replayed; an entry of which only a part has come stays."""
    staged = [ENTRIES, *(each.staged for each in tables)]
    run(connection, *(f"DELETE FROM {each} WHERE seq <= {last}" for each in staged))
