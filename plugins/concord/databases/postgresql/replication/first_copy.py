"""The first copy of a replication at its subscriber: the tables' content and the level, in one transaction (S0-51)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg

from concord.databases.contract.replication_ends import Copies, Filled
from concord.databases.postgresql.entries.mapped_lines import TableMapping, copied
from concord.databases.postgresql.entries.staging import Layout, ReplicatedTable
from concord.databases.postgresql.facts.about_table import about
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.facts.refusal import told
from concord.databases.postgresql.log.frames import number
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.queued import compensation
from concord.databases.postgresql.replay import copied_history
from concord.databases.postgresql.replay.known_columns import columns_before, known_columns
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replication.tables import followed
from concord.databases.postgresql.write import identity_ranges, untranslatable
from concord.jobs.replication import ReplicationDefinition, ReplicationJob
from concord.messages.errors import LinkFailed, SitesDiffer
from concord.tables.row_mapping import Mapper

#: COPY's own words about the place of an error.
_COLUMN = re.compile(r"COPY .*, line \d+, column ([^:\n]+)")


def fill(
    connection: Connection,
    layout: Layout,
    copies: Copies,
    level: Level,
    at: int,
    *,
    replace: bool,
    private: bool,
) -> Filled:
    """In an open transaction; no user writes the tables meanwhile. `at`: the number at which the rows are copied.

    Where the level says so, some tables alone: then all others were replayed up to that number.

    `private`: no message tells a value. Raises SitesDiffer, LeaseLost, LinkFailed, and psycopg.Error.
    """
    layout = _begun(connection, layout, level, at)
    plain = [each.table.sql for each in layout.of(Kind.ROWS) if each.history is None]
    if plain:  # to a history nobody else appends: the level's row is locked
        run(connection, f"LOCK TABLE {', '.join(plain)} IN SHARE ROW EXCLUSIVE MODE")
    # Users' transactions that wrote them have ended before this place, and the next ones end after it.
    (own,) = one(connection, "SELECT pg_current_wal_insert_lsn()::text")
    form = "binary" if layout.published.binary else "text"
    filled: dict[str, dict[str, int]] = {}
    for each in layout.tables:
        with _about(each, level.site, private=private):
            if each.history is not None:
                if not replace:
                    _refuse_rows(connection, each, level.site)
                filled[each.name] = _versions(connection, each, at, copies[each.name](), form)
            elif each.kind in (Kind.ROWS, Kind.VERSIONS):
                _empty(connection, each, level.site, replace=replace or each.kind is Kind.VERSIONS)
                found = _copied(connection, each.table.sql, each, copies[each.name](), form)
                filled[each.name] = {"inserted": found}
            elif each.name in copies:
                _report(connection, each, copies[each.name](), form)
    return Filled({each.name: filled[each.name] for each in layout.of(Kind.ROWS)}, number(own))


def pass_numbers(connection: Connection, layout: Layout, replication: ReplicationDefinition) -> None:
    """Where users of the subscriber insert rows as well, its sequences go on after those that were copied."""
    if replication.both_ways:
        tables = [each.table.name for each in layout.of(Kind.ROWS)]
        identity_ranges.pass_rows(connection, replication.subscriber, tables)


def _begun(connection: Connection, layout: Layout, level: Level, at: int) -> Layout:
    """The level is moved. Returns the tables that are copied: all, or some alone."""
    if not level.copied:
        level.begin(connection, at, followed(layout), known_columns(layout))
        return layout
    columns = known_columns(layout, columns_before(connection, level))
    level.copied_at(connection, at, followed(layout), columns)
    return Layout(layout.published, tuple(each for each in layout.tables if each.name in level.copied))


@contextmanager
def _about(table: ReplicatedTable, site: str, *, private: bool) -> Iterator[None]:
    """While one table is copied: whatever fails names it, and the column of a value without a form here."""
    with about(table.name, site, private=private):
        try:
            yield
        except psycopg.errors.UntranslatableCharacter as error:
            found = _COLUMN.search(error.diag.context or "")
            column = f" with such a value in its column {found[1]}" if found else ""
            why = untranslatable.told(column, told(error, private=private))
            raise LinkFailed(f"{table.name}: {why}", table=table.name) from (None if private else error)


def mapped(layout: Layout, copies: Copies, mapper: Mapper) -> Copies:
    """The same in the subscriber's columns. While they are read they raise MappingNotReversible."""
    made = {
        each.name: partial(_mapped, each.mapping, copies[each.name], mapper)
        for each in layout.tables
        if each.mapping is not None
    }
    return {**copies, **made}


def _mapped(mapping: TableMapping, copy: Callable[[], Iterator[bytes]], mapper: Mapper) -> Iterator[bytes]:
    return copied(mapping, copy(), mapper)


def _empty(connection: Connection, table: ReplicatedTable, site: str, *, replace: bool) -> None:
    if replace:
        run(connection, f"DELETE FROM {table.table.sql}")
    else:
        _refuse_rows(connection, table, site)


def refuse_filled(connection: Connection, layout: Layout, job: ReplicationJob) -> None:
    """Before runs refuse the tables that are copied alone. Raises SitesDiffer where one has rows that are to stay."""
    for each in layout.tables:
        if each.name in job.copied and not job.replace:
            _refuse_rows(connection, each, job.target.name)


def _refuse_rows(connection: Connection, table: ReplicatedTable, site: str) -> None:
    if rows(connection, f"SELECT 1 FROM {table.table.sql} LIMIT 1"):
        raise SitesDiffer(
            f"{site}: {table.table.name} has rows already; empty it, or initialize with `replace`"
        )


def _report(connection: Connection, table: ReplicatedTable, blocks: Iterator[bytes], form: str) -> None:
    """Take the log's entries from compensations that are not replayed: what they take back is not there any more."""
    names = ", ".join(column.sql for column in table.columns)
    kept = "CREATE TEMPORARY TABLE concord_reported ON COMMIT DROP AS SELECT"
    run(connection, f"{kept} {names} FROM {table.table.sql} WITH NO DATA")
    _copied(connection, "pg_temp.concord_reported", table, blocks, form)
    run(connection, compensation.reported("c.conflict", "pg_temp.concord_reported c, "))


def _versions(
    connection: Connection, table: ReplicatedTable, at: int, blocks: Iterator[bytes], form: str
) -> dict[str, int]:
    """A history loses nothing: rows that are not as in their newest version get another one (S0-49).

    Returns how many versions were appended, and how many rows were alike: they were copied as well.
    """
    run(connection, copied_history.create(table))
    found = _copied(connection, copied_history.COPIED, table, blocks, form)
    changed, gone = (run(connection, each) for each in copied_history.versions(table, at))
    run(connection, f"DROP TABLE {copied_history.COPIED}")
    return {"inserted": changed + gone, "alike": found - changed}


def _copied(
    connection: Connection, into: str, table: ReplicatedTable, blocks: Iterator[bytes], form: str
) -> int:
    columns = ", ".join(column.sql for column in table.columns)
    query = f"COPY {into} ({columns}) FROM STDIN (FORMAT {form})"
    with connection.cursor() as cursor:
        with cursor.copy(query.encode()) as copy:
            for block in blocks:
                copy.write(block)
        return cursor.rowcount
