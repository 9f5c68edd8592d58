"""A person's decision between two sites' rows, at one of them: in one transaction, under the tables' locks (S2-21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from concord.databases.contract.entry_decision import Choice, Hold, Keys, Rows
from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.log.frames import number
from concord.databases.postgresql.replay import decided
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.orphans import Reference, lacks_parent, references
from concord.messages.errors import ConstraintViolated, ParametersRefused


def keys_of(
    connection: Connection, tables: Sequence[ReplicatedTable], number: int, operations: Sequence[int] | None
) -> Keys:
    """By table: the keys of a staged entry's operations, before them and after them. None: of all its operations.

    Raises ParametersRefused.
    """
    found = {}
    chosen = "" if operations is None else f" AND s.seq = ANY ('{{{', '.join(map(str, operations))}}}')"
    for table in tables:
        within = f"FROM {table.staged} s, {ENTRIES} e WHERE {_of_entry(number)}{chosen}"
        before, after = ([told("s", name) for name in table.key] for told in (table.old, table.new))
        if rows(connection, f"SELECT {within} AND s.operation = 'T' LIMIT 1"):
            raise ParametersRefused(
                f"entry {number} empties a table, and nobody knows which rows its user had seen; `entry skip` lets the"
                " others go on"
            )
        query = (
            f"SELECT {_texts(before)} {within} AND s.operation <> 'I' UNION"
            f" SELECT {_texts(after)} {within} AND s.operation <> 'D'"
        )
        if keys := rows(connection, query):
            found[table.name] = keys
    return found


def _of_entry(number: int) -> str:
    return f"e.number = {number} AND s.seq > e.seq AND s.seq <= e.last"


def _texts(values: Sequence[str]) -> str:
    return ", ".join(f"{value}::text" for value in values)


@dataclass(frozen=True)
class Decision:
    """One site's part, while its transaction is open."""

    connection: Connection
    level: Level
    tables: tuple[ReplicatedTable, ...]
    keys: Keys
    own_level: int  #: of this site's log: nobody has written these tables after it
    private: Mapping[str, Sequence[str]]
    references: Sequence[Reference]

    def rows(self) -> Rows:
        """The site's rows of these keys, by table, as COPY writes them."""
        return {each.name: self._copied(_present(each)) for each in self.tables}

    def before(self, number: int) -> Rows:
        """Those rows as the entry's first operation on each key met them at its publisher."""
        return {each.name: self._copied(_met(each, number)) for each in self.tables}

    def _copied(self, query: str) -> bytes:
        with self.connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
            return b"".join(map(bytes, copy))

    def give_way(self, rows: Rows, before: Rows, choice: Choice) -> int:
        """Take the other site's rows; those that users here changed, and that differ, go into the conflict log.

        Returns their number. Raises ConstraintViolated.
        """
        for each in self.tables:
            self._taken(_won(each), each, rows[each.name])
            self._taken(_old(each), each, before[each.name])
        lost = sum(self._log(each, choice) for each in self.tables)
        for each in self.tables:
            self._written(each, choice)
        for reference in self.references:
            self._refuse_orphans(reference, choice)
        return lost

    def _taken(self, name: str, table: ReplicatedTable, rows: bytes) -> None:
        names = ", ".join(column.sql for column in _in_order(table))
        of_table = f"SELECT {names} FROM {table.table.sql} WITH NO DATA"
        run(self.connection, f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {of_table}")
        with self.connection.cursor().copy(f"COPY pg_temp.{name} FROM STDIN".encode()) as copy:
            copy.write(rows)

    def _written(self, table: ReplicatedTable, choice: Choice) -> None:
        names, won, sql = ", ".join(each.sql for each in _in_order(table)), _won(table), table.table.sql
        same = f"{_same(table, 'w', 't')} AND {_alike(table, 'w', 't')}"
        try:
            run(
                self.connection,
                f"CREATE TEMPORARY TABLE {_lost(table)} ON COMMIT DROP AS SELECT t.* FROM {sql} t"
                f" WHERE {_chosen(table, 't')}",
                f"DELETE FROM {sql} t WHERE {_chosen(table, 't')}"
                f" AND NOT EXISTS (SELECT FROM pg_temp.{won} w WHERE {same})",
                f"INSERT INTO {sql} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM pg_temp.{won} w"
                f" WHERE NOT EXISTS (SELECT FROM {sql} t WHERE {_same(table, 'w', 't')})",
            )
        except (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation) as error:
            raise ConstraintViolated(
                f"{choice.loser}: {table.name}: a row of {choice.winner} has a value that another row has here"
                f" ({error.diag.constraint_name}), so nothing was written. Change or delete that other row, or decide"
                " about its own transaction, at which the other direction stops"
            ) from error

    def _refuse_orphans(self, reference: Reference, choice: Choice) -> None:
        """No user's own check is made here, and tables of which no row was written hold children as well."""
        child, parent = reference.child, reference.parent
        by_name = {each.name for each in self.tables}
        if child.name in by_name:
            orphans = (
                f"FROM {child.table.sql} t WHERE {_chosen(child, 't')} AND {lacks_parent(reference)} LIMIT 1"
            )
            if rows(self.connection, f"SELECT {orphans}"):
                raise ConstraintViolated(
                    f"{choice.loser}: {child.name}: a row of {choice.winner} refers to a row of {parent.name} that is"
                    f" not here, so nothing was written. Insert that row as it is at {choice.winner}, or decide about"
                    " its own transaction, at which the other direction stops"
                )
        if parent.name in by_name:
            left = [f"l.{quote(name)}" for name in reference.key.referenced]
            missing = f"NOT EXISTS (SELECT FROM {parent.table.sql} p WHERE {reference.parent_has(left)})"
            lost = f"FROM pg_temp.{_lost(parent)} l JOIN {child.table.sql} t ON {reference.child_has(left)}"
            if rows(self.connection, f"SELECT {lost} WHERE {missing} LIMIT 1"):
                raise ConstraintViolated(
                    f"{choice.loser}: {child.name}: a row refers to a row of {parent.name} that {choice.winner} has"
                    " deleted, so nothing was written. Delete or change that row, or decide about its own transaction,"
                    " at which the other direction stops"
                )

    def _log(self, table: ReplicatedTable, choice: Choice) -> int:
        """Both rows, before the one is written over; a row that is not there lost to one that is.

        A row that is as the entry met it at its publisher was changed by no user here, and so loses nothing.
        """
        hidden = _array(self.private[table.name])
        shown = ", ".join(
            "NULL" if column.name in self.private[table.name] else f"k.k{at}::text"
            for at, column in enumerate(table.key_columns)
        )
        key, where = f"to_jsonb(ARRAY[{shown}]::text[])", " AND ".join
        at_key = {
            side: where(f"{side}.{column.sql} = k.k{at}" for at, column in enumerate(table.key_columns))
            for side in ("t", "w", "o")
        }
        is_there = {side: f"({side}.{table.key_columns[0].sql} IS NOT NULL)" for side in at_key}
        image = {
            side: f"CASE WHEN {is_there[side]} THEN to_jsonb({side}.*) - {hidden} END" for side in ("t", "w")
        }
        kind = (
            f"CASE WHEN NOT {is_there['w']} THEN 'delete_update' WHEN NOT {is_there['t']} THEN 'update_delete'"
            " ELSE 'update_update' END"
        )
        differs = {
            side: f"({is_there[side]} <> {is_there['t']} OR ({is_there[side]} AND NOT {_alike(table, side, 't')}))"
            for side in ("w", "o")
        }
        facts = (choice.synchronization, choice.link, choice.transmission, table.name)
        return run(
            self.connection,
            "INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver,"
            " reason, winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)"
            f" SELECT encode(sha256(convert_to({literal(choice.transmission + '/' + table.name)} || (k.*)::text,"
            f" 'UTF8')), 'hex'), {', '.join(map(literal, facts))}, {key}, {kind}, 'person', {literal(choice.reason)},"
            f" {literal(choice.winner)}, {literal(choice.loser)}, '{{}}', '{{}}', {image['w']}, {image['t']}"
            f" FROM pg_temp.{table.chosen} k LEFT JOIN pg_temp.{_won(table)} w ON {at_key['w']}"
            f" LEFT JOIN pg_temp.{_old(table)} o ON {at_key['o']}"
            f" LEFT JOIN {table.table.sql} t ON {at_key['t']} WHERE {differs['w']} AND {differs['o']}",
        )

    def pass_over(self, until: int) -> None:
        """The other site's operations on these keys up to that number were decided about. Raises LeaseLost."""
        decided.add(self.connection, self.level, self.keys, until)


@contextmanager
def begun(
    connection: Connection,
    level: Level,
    tables: Sequence[ReplicatedTable],
    keys: Keys,
    private: Mapping[str, Sequence[str]],
    settings: Sequence[str],
    hold: Hold,
) -> Iterator[Decision]:
    """The level's row is written first, so that nothing of it travels back; then nobody else writes any of the tables.

    It commits at the end of the context, unless it is a look. Raises LeaseLost, and psycopg.Error.
    """
    touched = tuple(each for each in tables if each.name in keys)
    for each in touched:
        decided.create(connection, each, each.chosen, keys[each.name])
    local = [each.replace("SET ", "SET LOCAL ", 1) for each in settings]
    more = ("SET LOCAL synchronous_commit = on", f"SET LOCAL lock_timeout = '{hold.seconds}s'")
    with in_transaction(connection, *local, *more) as mine:
        level.change(connection, "level = r.level")
        listed = ", ".join(each.table.sql for each in tables)
        if hold.is_look:
            mine.last.append("ROLLBACK")
        else:
            run(connection, f"LOCK TABLE {listed} IN SHARE ROW EXCLUSIVE MODE")
        # Users' transactions that wrote them have ended before this place, and the next ones end after it.
        (own,) = one(connection, "SELECT pg_current_wal_insert_lsn()::text")
        yield Decision(connection, level, touched, keys, number(own), private, references(tables))


def _won(table: ReplicatedTable) -> str:
    """The temporary tables of a decision: the winner's rows, those that the entry met, those written over."""
    return f"concord_won_{table.place}"


def _old(table: ReplicatedTable) -> str:
    return f"concord_old_{table.place}"


def _lost(table: ReplicatedTable) -> str:
    return f"concord_lost_{table.place}"


def _present(table: ReplicatedTable) -> str:
    columns = ", ".join(f"t.{column.sql}" for column in _in_order(table))
    return f"SELECT {columns} FROM {table.table.sql} t WHERE {_chosen(table, 't')}"


def _met(table: ReplicatedTable, number: int) -> str:
    """Of the staged entry's operations the first one on each key; its row before, where there was one."""
    ordered = _in_order(table)
    keys = [column.sql for column in table.key_columns]
    old = ", ".join(f"{table.old('s', column.name)} AS {column.sql}" for column in ordered)
    new = ", ".join(
        f"{table.new('s', column.name) if column.name in table.key else 'NULL'} AS {column.sql}"
        for column in ordered
    )
    within = f"FROM {table.staged} s, {ENTRIES} e WHERE {_of_entry(number)}"
    first = (
        f"SELECT DISTINCT ON ({', '.join(keys)}) * FROM ("
        f"SELECT s.seq AS concord_seq, true AS concord_there, {old} {within} AND s.operation <> 'I'"
        f" UNION ALL SELECT s.seq, false, {new} {within} AND s.operation <> 'D') o"
        f" WHERE {_chosen(table, 'o')} ORDER BY {', '.join(keys)}, concord_seq, concord_there DESC"
    )
    return f"SELECT {', '.join(column.sql for column in ordered)} FROM ({first}) f WHERE concord_there"


def _in_order(table: ReplicatedTable) -> list[Column]:
    """Both sites have the same columns, not always in the same order."""
    return sorted(table.columns, key=lambda column: column.name)


def _chosen(table: ReplicatedTable, row: str) -> str:
    same = " AND ".join(f"k.k{at} = {row}.{column.sql}" for at, column in enumerate(table.key_columns))
    return f"EXISTS (SELECT FROM pg_temp.{table.chosen} k WHERE {same})"


def _same(table: ReplicatedTable, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{column.sql} = {other}.{column.sql}" for column in table.key_columns)


def _alike(table: ReplicatedTable, one: str, other: str) -> str:
    """Image by image, as the replay compares them."""
    names = [column.sql for column in table.columns]
    sides = (", ".join(f"{side}.{name}" for name in names) for side in (one, other))
    return "record_image_eq(ROW({}), ROW({}))".format(*sides)


def _array(names: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(map(literal, names))}]::text[]"
