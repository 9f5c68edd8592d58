"""The procedure that replays what is staged: each entry in a transaction of its own, operation by operation.

It decides in place what an operation does where the row is not as it was at the publisher (S0-48). An error ends it:
all entries before stand, and nothing of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.replay import appended, compared, orphans
from concord.databases.postgresql.replay.appended import Appended
from concord.databases.postgresql.replay.called import Called
from concord.databases.postgresql.replay.compared import Compared
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.statements import (
    ALTERED,
    FOUND,
    NOT_FOUND,
    declared,
    of_staged_row,
    refused,
    taken,
)
from concord.jobs.replication import Conversions, ReplicationDefinition
from concord.jobs.replication_report import COUNTED

#: SQLSTATE of our own.
LOST = "CNC01"
#: The counts of a call's entries that stand, where some may be left out.
COUNTED_SO_FAR = "concord.counted"
#: A table's column may have the name of a variable.
COLUMNS_FIRST = "#variable_conflict use_column"


def create(tables: Sequence[ReplicatedTable], level: Level, replication: ReplicationDefinition) -> str:
    """The statement that makes it, for this session."""
    found = orphans.references(tables) if replication.both_ways else []
    keeps = any(each.history is not None for each in tables)
    body = Body(
        staged=tables,
        counted=tables,
        declared=f"orphaned boolean := false; {appended.VARIABLES if keeps else ''}",
        begun=appended.entered("r") if keeps else "",
        cases="".join(cases(tables, replication)),
        ended=orphans.refused(found, compared.CONFLICT) + (_told(tables) if replication.skip else ""),
    )
    return created(body, level)


def _told(tables: Sequence[ReplicatedTable]) -> str:
    """The session hears of each entry that stands: a call that fails at a later one returns no counts."""
    return f" PERFORM set_config('{COUNTED_SO_FAR}', ({counted(tables)})::text, false);"


@dataclass(frozen=True, slots=True)
class Body:
    """The parts in which procedures differ: statements in PL/pgSQL, of tables that are staged and of those counted."""

    staged: Sequence[ReplicatedTable]
    counted: Sequence[ReplicatedTable]
    declared: str
    begun: str
    cases: str
    ended: str


def created(body: Body, level: Level) -> str:
    """`pg_temp.concord_replay`. Once its last transaction is on disk, so are all before it."""
    last = f"{body.ended}\n        {ended(level)}"
    source = f"""
{COLUMNS_FIRST}
DECLARE
  r record; entry bigint; concord_began bigint; concord_last bigint := 0; begun boolean := false;
  converted bigint := 0; n bigint; {body.declared}
  {variables(body.counted)}
BEGIN
  FOR r IN {operations(body.staged)} LOOP
    IF r.place < 0 THEN
      IF begun THEN
        {last}
        COMMIT;
      END IF;
      begun := true; entry := r.number; concord_began := r.seq; concord_last := r.last; converted := 0;
      {body.begun}
      {level.entry("r")};
      IF NOT FOUND THEN RAISE EXCEPTION 'a newer run has taken over' USING ERRCODE = '{LOST}'; END IF;
    ELSIF r.seq <= concord_last THEN
      CASE r.place{body.cases}
      END CASE;
    END IF;
  END LOOP;
  {last}
  done := {counted(body.counted)};
  PERFORM set_config('synchronous_commit', 'on', true);
END"""
    head = "CREATE OR REPLACE PROCEDURE pg_temp.concord_replay(since bigint, INOUT done jsonb)"
    return f"{head} LANGUAGE plpgsql AS {literal(source)}"


def operations(tables: Sequence[ReplicatedTable], within: str = "true") -> str:
    """Entries and operations in one order: an entry's own row comes before its operations. `within`: which of these."""
    nothing = [f"NULL::{each.staged}" for each in tables]
    named = ", ".join(f"{value} AS t{each.place}" for value, each in zip(nothing, tables, strict=True))
    parts = [
        f'SELECT e.seq, -1 AS place, e.last, e.number, e.at, e.size, NULL::"char" AS operation, {named}'
        f" FROM {ENTRIES} e WHERE e.number > since"
    ]
    for at, each in enumerate(tables):
        values = [*nothing[:at], "s", *nothing[at + 1 :]]
        parts.append(
            f"SELECT s.seq, {each.place}, NULL, NULL, NULL, NULL, s.operation, {', '.join(values)} FROM {each.staged} s"
            f" WHERE {within}"
        )
    return " UNION ALL ".join(parts) + " ORDER BY seq"


def ended(level: Level) -> str:
    """An entry's last statement."""
    return f"IF converted > 0 THEN {level.converted('converted')}; END IF;"


def variables(tables: Sequence[ReplicatedTable]) -> str:
    """Of each table: its staged row, and its operations by their effect."""
    counters = (f"{effect}_{each.place} bigint := 0;" for each in tables for effect in COUNTED)
    return " ".join((*map(declared, tables), *counters))


def counted(tables: Sequence[ReplicatedTable]) -> str:
    """The counts' values. One object for each table: no function takes more than a hundred arguments."""
    return " || ".join(map(_counted, tables))


def _counted(table: ReplicatedTable) -> str:
    effects = ", ".join(f"'{effect}', {effect}_{table.place}" for effect in COUNTED)
    return f"jsonb_build_object({literal(table.name)}, jsonb_build_object({effects}))"


def cases(tables: Sequence[ReplicatedTable], replication: ReplicationDefinition) -> Iterator[str]:
    """By the place of a table: the statements of its operations."""
    found = orphans.references(tables) if replication.both_ways else []
    for table in tables:
        written = _written(table, replication)
        yield f"\n      WHEN {table.place} THEN{written.operations}{orphans.looked_for(table, found)}"


def _written(
    table: ReplicatedTable, replication: ReplicationDefinition
) -> Called | Compared | Appended | Written:
    if table.kind is Kind.CALLS:
        return Called(table)
    if table.history is not None:
        return Appended(table, replication.conversions)
    return Compared(table) if replication.both_ways else Written(table, replication.conversions)


class Written:
    """The statements of one table. Where its rows are compared, an update or a delete that does not find the row with
    the publisher's values is looked at once more."""

    def __init__(self, table: ReplicatedTable, conversions: Conversions) -> None:
        self.table, self.refuses = table, conversions is Conversions.REFUSE
        self.of, self.sql = of_staged_row(table), table.table.sql

    @property
    def operations(self) -> str:
        """Updates come first: most operations are such."""
        count, of = self.of.count, self.of
        return f"""
        {taken(self.table)}{refused(self.table)}
        CASE r.operation
        WHEN 'U' THEN
          {of.update(self.same_row, of.values)};
          IF FOUND THEN {count("updated")} ELSE {self.else_written_anew} END IF;
        WHEN 'I' THEN
          {self.of.insert_row} ON CONFLICT ({of.key}) DO NOTHING;
          IF FOUND THEN {count("inserted")} ELSE {self.else_updated} END IF;
        WHEN 'D' THEN
          DELETE FROM {self.sql} t WHERE {self.before};
          IF FOUND THEN {count("deleted")} ELSE {self.else_missing} END IF;
        WHEN 'V' THEN
          {of.update(self.same_row, of.kept)};
          IF NOT FOUND THEN {self.refuse("an update that does not find its row, of which not all was sent")} END IF;
          {count("updated")}
        ELSE -- truncated: readers of older snapshots still see the rows
          DELETE FROM {self.sql};
          GET DIAGNOSTICS n = ROW_COUNT;
          deleted_{self.table.place} := deleted_{self.table.place} + n;
        END CASE;"""

    @property
    def before(self) -> str:
        """The subscriber's row, as far as it is known as it was at the publisher before the operation."""
        return self.of.as_before if self.table.compared else self.of.at_old_key

    @property
    def same_row(self) -> str:
        """That row, if an update can make the new one of it."""
        return " AND ".join([self.before, *self.of.same_generated])

    @property
    def else_written_anew(self) -> str:
        """No such row, or one whose generated value changed."""
        unlike = self.else_unlike if self.table.compared else self.else_inserted
        return self._anew(self.before, self.of.count("updated"), unlike)

    def _anew(self, where: str, done: str, otherwise: str) -> str:
        """The row is written anew if an update cannot change its generated value."""
        if not self.of.same_generated:
            return otherwise
        written = f"IF FOUND THEN {self.of.insert_row}; {done} ELSE {otherwise} END IF;"
        return f"DELETE FROM {self.sql} t WHERE {where}; {written}"

    @property
    def else_unlike(self) -> str:
        """An update does not find the row with the publisher's values. It may have those of the update already."""
        of = self.of
        return (
            f"PERFORM FROM {self.sql} t WHERE {of.at_old_key} OR {of.at_new_key}"
            f" HAVING count(*) = 1 AND bool_and({of.at_new_key} AND {of.alike(of.values)});"
            f" IF FOUND THEN {of.count('alike')} ELSE {self.else_altered} END IF;"
        )

    @property
    def else_altered(self) -> str:
        """It has others, or does not exist."""
        of, said = self.of, self.convert("an update of a row that was altered here", ALTERED)
        if self.refuses:
            return f"PERFORM FROM {self.sql} t WHERE {of.at_old_key}; IF FOUND THEN {said} END IF; {self.else_inserted}"
        altered = f"{said} {of.count('altered')}"
        updated = of.update(" AND ".join([of.at_old_key, *self.of.same_generated]), of.values)
        anew = self._anew(of.at_old_key, altered, self.else_inserted)
        return f"{updated}; IF FOUND THEN {altered} ELSE {anew} END IF;"

    @property
    def else_missing(self) -> str:
        """A delete does not find the row, or not with the publisher's values."""
        missing = f"{self.convert('a delete that does not find its row')} {self.of.count('missing')}"
        if not self.table.compared:
            return missing
        said = self.convert("a delete of a row that was altered here", ALTERED)
        found = "PERFORM" if self.refuses else "DELETE"
        return (
            f"{found} FROM {self.sql} t WHERE {self.of.at_old_key};"
            f" IF FOUND THEN {said} {self.of.count('altered')} ELSE {missing} END IF;"
        )

    @property
    def else_inserted(self) -> str:
        return (
            f"{self.convert('an update that does not find its row')}"
            f" {self.of.insert_row}; {self.of.count('inserted_for_update')}"
        )

    @property
    def else_updated(self) -> str:
        return (
            f"{self.convert('an insert that finds its row', FOUND)}"
            f" {self.of.update(self.of.at_new_key, self.of.values)}; {self.of.count('updated_for_insert')}"
        )

    def convert(self, what: str, number: str = NOT_FOUND) -> str:
        return self.refuse(what, number) if self.refuses else "converted := converted + 1;"

    def refuse(self, what: str, number: str = NOT_FOUND) -> str:
        """No value is told: some may be private."""
        said = literal(f"{self.table.table.name}: {what}".replace("%", "%%"))
        return f"RAISE EXCEPTION {said} USING ERRCODE = '{number}';"
