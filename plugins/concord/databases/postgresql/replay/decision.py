"""A person's decision between two sites' rows, at one of them: in one transaction, under the tables' locks (S2-21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.contract.replication_ends import Choice, Keys
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.log.frames import number
from concord.databases.postgresql.replay import decided
from concord.databases.postgresql.replay.level import Level
from concord.messages.errors import ParametersRefused

#: For how long users' transactions on these tables are waited for.
PATIENCE = "10s"


def keys_of(connection: Connection, tables: Sequence[ReplicatedTable], number: int) -> Keys:
    """By table: the keys of a staged entry's operations, before them and after them. Raises ParametersRefused."""
    found = {}
    for table in tables:
        within = f"FROM {table.staged} s, {ENTRIES} e WHERE e.number = {number} AND s.seq > e.seq AND s.seq <= e.last"
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

    def rows(self) -> dict[str, bytes]:
        """The site's rows of these keys, by table, as COPY writes them."""
        return {each.name: self._copied(each) for each in self.tables}

    def _copied(self, table: ReplicatedTable) -> bytes:
        columns = ", ".join(f"t.{column.sql}" for column in _in_order(table))
        query = f"COPY (SELECT {columns} FROM {table.table.sql} t WHERE {_chosen(table, 't')}) TO STDOUT"
        with self.connection.cursor().copy(query.encode()) as copy:
            return b"".join(map(bytes, copy))

    def give_way(self, rows: Mapping[str, bytes], choice: Choice) -> int:
        """Take the other site's rows; the own ones that differ stand in the conflict log. Returns how many do."""
        return sum(self._give_way(each, rows[each.name], choice) for each in self.tables)

    def _give_way(self, table: ReplicatedTable, theirs: bytes, choice: Choice) -> int:
        names = ", ".join(column.sql for column in _in_order(table))
        won = f"concord_won_{table.place}"
        run(
            self.connection,
            f"CREATE TEMPORARY TABLE {won} ON COMMIT DROP AS SELECT {names} FROM {table.table.sql} WITH NO DATA",
        )
        with self.connection.cursor().copy(f"COPY pg_temp.{won} FROM STDIN".encode()) as copy:
            copy.write(theirs)
        differs = (
            f"NOT EXISTS (SELECT FROM pg_temp.{won} w WHERE {_same(table, 'w', 't')} AND {_alike(table)})"
        )
        lost = self._log(table, won, choice)
        run(
            self.connection,
            f"DELETE FROM {table.table.sql} t WHERE {_chosen(table, 't')} AND {differs}",
            f"INSERT INTO {table.table.sql} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM pg_temp.{won} w"
            f" WHERE NOT EXISTS (SELECT FROM {table.table.sql} t WHERE {_same(table, 'w', 't')})",
        )
        return lost

    def _log(self, table: ReplicatedTable, won: str, choice: Choice) -> int:
        """Both rows, before the one is written over; a row that is not there lost to one that is."""
        hidden = _array(self.private[table.name])
        shown = ", ".join(
            "NULL" if column.name in self.private[table.name] else f"k.k{at}::text"
            for at, column in enumerate(table.key_columns)
        )
        key, where = f"to_jsonb(ARRAY[{shown}]::text[])", " AND ".join
        at_key = {
            side: where(f"{side}.{column.sql} = k.k{at}" for at, column in enumerate(table.key_columns))
            for side in ("t", "w")
        }
        is_there = {side: f"({side}.{table.key_columns[0].sql} IS NOT NULL)" for side in ("t", "w")}
        image = {
            side: f"CASE WHEN {is_there[side]} THEN to_jsonb({side}.*) - {hidden} END" for side in ("t", "w")
        }
        kind = (
            f"CASE WHEN NOT {is_there['w']} THEN 'delete_update' WHEN NOT {is_there['t']} THEN 'update_delete'"
            " ELSE 'update_update' END"
        )
        facts = (choice.synchronization, choice.link, choice.transmission, table.name)
        return run(
            self.connection,
            "INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver,"
            " reason, winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)"
            f" SELECT encode(sha256(convert_to({literal(choice.transmission + '/' + table.name)} || (k.*)::text,"
            f" 'UTF8')), 'hex'), {', '.join(map(literal, facts))}, {key}, {kind}, 'person', {literal(choice.reason)},"
            f" {literal(choice.winner)}, {literal(choice.loser)}, '{{}}', '{{}}', {image['w']}, {image['t']}"
            f" FROM pg_temp.{table.chosen} k LEFT JOIN pg_temp.{won} w ON {at_key['w']}"
            f" LEFT JOIN {table.table.sql} t ON {at_key['t']}"
            f" WHERE {is_there['w']} <> {is_there['t']} OR ({is_there['w']} AND NOT {_alike(table)})",
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
) -> Iterator[Decision]:
    """The level's row is written first, so that nothing of it travels back; then nobody else writes the tables.

    It commits at the end of the context. Raises LeaseLost, and psycopg.Error.
    """
    touched = tuple(each for each in tables if each.name in keys)
    for each in touched:
        decided.create(connection, each, each.chosen, keys[each.name])
    local = [each.replace("SET ", "SET LOCAL ", 1) for each in settings]
    more = ("SET LOCAL synchronous_commit = on", f"SET LOCAL lock_timeout = '{PATIENCE}'")
    with in_transaction(connection, *local, *more):
        level.change(connection, "level = r.level")
        listed = ", ".join(each.table.sql for each in touched)
        run(connection, f"LOCK TABLE {listed} IN SHARE ROW EXCLUSIVE MODE")
        # Users' transactions that wrote them have ended before this place, and the next ones end after it.
        (own,) = one(connection, "SELECT pg_current_wal_insert_lsn()::text")
        yield Decision(connection, level, touched, keys, number(own), private)


def _in_order(table: ReplicatedTable) -> list[Column]:
    """Both sites have the same columns, not always in the same order."""
    return sorted(table.columns, key=lambda column: column.name)


def _chosen(table: ReplicatedTable, row: str) -> str:
    same = " AND ".join(f"k.k{at} = {row}.{column.sql}" for at, column in enumerate(table.key_columns))
    return f"EXISTS (SELECT FROM pg_temp.{table.chosen} k WHERE {same})"


def _same(table: ReplicatedTable, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{column.sql} = {other}.{column.sql}" for column in table.key_columns)


def _alike(table: ReplicatedTable) -> str:
    """Image by image, as the replay compares them."""
    names = [column.sql for column in table.columns]
    sides = (", ".join(f"{side}.{name}" for name in names) for side in ("t", "w"))
    return "record_image_eq(ROW({}), ROW({}))".format(*sides)


def _array(names: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(map(literal, names))}]::text[]"
