"""Entries whose tables have hooks: each in one transaction, its operations in their order (S3-08, S3-13).

Before some operations are replayed, the hooks of their tables see them, each with the row that it meets. No two of
these touch one row, so what a hook is shown is there. Entries without such tables go the ordinary way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.replay import appended, compared, orphans
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.procedure import (
    COLUMNS_FIRST,
    cases,
    counted,
    ended,
    operations,
    variables,
)
from concord.databases.postgresql.replay.statements import Statements
from concord.databases.postgresql.write import added_rows
from concord.jobs.replication import ReplicationDefinition
from concord.rules.hook_function import AboutToBeWritten, AsksHook, Hooked, Verdict, Word

#: Operations that a hook is shown at once.
BATCH = 2_000
#: The number of an operation that a hook refuses, as of errors.
REFUSED_BY_HOOK = "CNC08"

_WORDS = "CASE s.operation WHEN 'I' THEN 'insert' WHEN 'D' THEN 'delete' WHEN 'T' THEN 'truncate' ELSE 'update' END"
Effects = Counter[tuple[str, str]]  #: by table and effect


class RefusedByHook(Exception):
    """A hook refuses an operation, and with it the entry: which one, and why, for people."""

    def __init__(self, operation: str, why: str) -> None:
        self.operation, self.why = operation, why
        super().__init__(why)


class Operation(NamedTuple):
    """One operation on a table with a hook."""

    seq: int
    before: int  #: the last one of this entry that touches the same row; 0 for none
    alone: bool  #: of which nobody can say which rows it touches


@dataclass(frozen=True, slots=True)
class HookedTable:
    """A table of the replication, and its hook at this site."""

    table: ReplicatedTable
    hooked: Hooked

    @property
    def touched(self) -> str:
        """Which rows each operation touches, by their keys before and after."""
        keys = range(len(self.table.key))
        of = Statements(self.table, "s")
        new = [of.values[name] for name in self.table.key]
        old = [self.table.old("s", name) for name in self.table.key]
        names = ", ".join(f"k{at}" for at in keys)
        parts = [
            f"SELECT s.seq, {', '.join(f'{value} AS k{at}' for at, value in zip(keys, values, strict=True))}"
            f" FROM {self.table.staged} s WHERE {{within}} AND s.operation IN ({kinds})"
            for values, kinds in ((new, "'I', 'U', 'V'"), (old, "'U', 'V', 'D'"))
        ]
        before = f"lag(seq) OVER (PARTITION BY {names} ORDER BY seq)"
        return (
            f"SELECT seq, coalesce(max(before), 0) AS before, false AS alone FROM (SELECT seq, {before} AS before"
            f" FROM ({' UNION '.join(parts)}) k) b GROUP BY seq UNION ALL SELECT s.seq, 0, true FROM"
            f" {self.table.staged} s WHERE {{within}} AND s.operation = 'T'"
        )

    @property
    def shown(self) -> str:
        """The operations of some seqs, each with the row that it meets."""
        of = Statements(self.table, "s")
        old = f"s.operation IN ('U', 'V', 'D') AND {of.at_old_key}"
        met = " UNION ALL ".join(
            f"SELECT t.* FROM {of.sql} t WHERE {where}"
            for where in (f"s.operation = 'I' AND {of.at_new_key}", old)
        )
        there = f"t.{self.table.key_columns[0].sql} IS NOT NULL"
        present = {column.name: f"t.{column.sql}" for column in self.table.columns}
        whole = {column.name for column in self.table.columns} <= set(self.table.before)
        previous = {name: self.table.old("s", name) for name in present} if whole else {}
        kept = (
            f"CASE WHEN s.operation IN ('U', 'V', 'D') THEN {self._image(previous)} END" if whole else "NULL"
        )
        return (
            f"SELECT s.seq, {_WORDS}, CASE WHEN s.operation IN ('I', 'U', 'V') THEN {self._image(of.kept)} END,"
            f" CASE WHEN {there} THEN {self._image(present)} END, {kept} FROM {self.table.staged} s"
            f" LEFT JOIN LATERAL ({met} LIMIT 1) t ON true WHERE {{within}} ORDER BY s.seq"
        )

    def locks(self, within: str) -> Iterator[str]:
        """The rows that are met stay as they are shown."""
        of = Statements(self.table, "s")
        for kinds, where in (("'I'", of.at_new_key), ("'U', 'V', 'D'", of.at_old_key)):
            yield (
                f"SELECT FROM {of.sql} t, {self.table.staged} s WHERE {within} AND s.operation IN ({kinds})"
                f" AND {where} FOR UPDATE OF t"
            )

    def changed(self, words: Sequence[tuple[int, Word]]) -> str:
        """The staged operations become what the hook made of them; their keys stay."""
        told = literal(json.dumps([{"seq": seq, "row": word.row} for seq, word in words]))
        made = ", ".join(
            f"c{at} = (w.row ->> {literal(column.name)})::{self.table.staged_type(column)}"
            for at, column in enumerate(self.table.columns)
            if column.name not in self.table.key
        )
        as_update = "operation = CASE s.operation WHEN 'V' THEN 'U' ELSE s.operation END, kept = NULL"
        return (
            f"UPDATE {self.table.staged} s SET {', '.join(filter(None, (as_update, made)))}"
            f" FROM jsonb_to_recordset({told}) AS w(seq bigint, row jsonb) WHERE s.seq = w.seq"
        )

    def _image(self, values: Mapping[str, str]) -> str:
        types = {column.name: column.type for column in self.table.columns}
        names = ", ".join(map(literal, values))
        texts = ", ".join(types[name].exact(value) for name, value in values.items())
        return f"jsonb_object(ARRAY[{names}]::text[], ARRAY[{texts}]::text[])"


@dataclass
class HookedEntries:
    """Replays what is staged, entry by entry."""

    connection: Connection
    level: Level
    tables: Sequence[ReplicatedTable]
    hooks: Sequence[HookedTable]
    replication: ReplicationDefinition
    ask_hook: AsksHook
    effects: Effects = field(default_factory=Counter)

    def are_touched(self, since: int) -> bool:
        """Does an entry that waits write a table with a hook?"""
        first = f"(SELECT min(seq) FROM {ENTRIES} WHERE number > {since})"
        touched = " UNION ALL ".join(
            f"SELECT FROM {each.table.staged} s WHERE s.seq > {first}" for each in self.hooks
        )
        return bool(rows(self.connection, f"SELECT FROM ({touched}) s LIMIT 1"))

    def replay(self, since: int) -> Mapping[str, Mapping[str, int]]:
        """All that waits after this number. Raises psycopg.Error, LeaseLost, HookFailed, RefusedByHook: the entries
        before stand, and `effects` counts them."""
        self.effects = Counter()
        run(self.connection, self._made)
        query = f"SELECT number, seq, last FROM {ENTRIES} WHERE number > {since} ORDER BY number"
        for number, first, last in rows(self.connection, query):
            with in_transaction(self.connection, "SET LOCAL synchronous_commit = on"):
                done = self._entry(number, first, last)
            self.effects += done
        return self.by_table

    @property
    def by_table(self) -> Mapping[str, Mapping[str, int]]:
        """The effects of the entries that stand."""
        found: dict[str, dict[str, int]] = {}
        for (table, effect), count in self.effects.items():
            found.setdefault(table, {})[effect] = count
        return found

    def _entry(self, number: int, first: int, last: int) -> Effects:
        staged = f"(SELECT e FROM {ENTRIES} e WHERE e.number = {number})"
        if not run(self.connection, self.level.entry(staged)):
            raise self.level.lost
        done: Effects = Counter()
        for since, upto in self._parts(first, last):
            asked = [self._asked(each, f"s.seq > {since} AND s.seq <= {upto}") for each in self.hooks]
            (told,) = one(
                self.connection, f"SELECT pg_temp.concord_hooked({number}, {since}, {upto}, {upto == last})"
            )
            done.update(
                {(table, effect): n for table, each in told.items() for effect, n in each.items() if n}
            )
            for each, words in zip(self.hooks, asked, strict=True):
                self._add(each, words)
        return done

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Ranges of seqs, in which no two operations touch one row."""
        within = f"s.seq > {first} AND s.seq <= {last}"
        query = " UNION ALL ".join(each.touched.format(within=within) for each in self.hooks)
        found = (Operation(*row) for row in rows(self.connection, f"SELECT * FROM ({query}) o ORDER BY seq"))
        since, count, was_alone = first, 0, False
        for each in found:
            if count and (each.before > since or each.alone or was_alone or count >= BATCH):
                yield since, each.seq - 1
                since, count = each.seq - 1, 0
            count, was_alone = count + 1, each.alone
        yield since, last

    def _asked(self, each: HookedTable, within: str) -> list[Word]:
        """The words of one table's hook, heeded in what is staged. Raises HookFailed, RefusedByHook."""
        for lock in each.locks(within):
            run(self.connection, lock)
        found = rows(self.connection, each.shown.format(within=within))
        words: list[Word] = []
        for at in range(0, len(found), BATCH):
            batch = [AboutToBeWritten(*row[1:]) for row in found[at : at + BATCH]]
            words += self.ask_hook(each.hooked, batch)
        told = list(zip((row[0] for row in found), words, strict=True))
        self._refuse(each, found, told)
        if changed := [(seq, word) for seq, word in told if word.verdict is Verdict.CHANGE]:
            run(self.connection, each.changed(changed))
        return words

    def _refuse(self, each: HookedTable, found: Sequence[Any], told: Sequence[tuple[int, Word]]) -> None:
        for row, (_, word) in zip(found, told, strict=True):
            if word.verdict is Verdict.REFUSE:
                reason = f": {word.reason}" if word.reason else ""
                raise RefusedByHook(
                    f"{row[1]} of {each.table.name}",
                    f"the hook {each.hooked.hook.call} refuses it{reason} (error {REFUSED_BY_HOOK})",
                )

    def _add(self, each: HookedTable, words: Sequence[Word]) -> None:
        for added in each.hooked.hook.adds:
            new = [row for word in words for row in word.added.get(added.name, ())]
            if new:
                given = f"SELECT e.row FROM jsonb_array_elements({literal(json.dumps(new))}) WITH ORDINALITY e(row, n)"
                added_rows.insert(self.connection, each.hooked, added, f"{given} ORDER BY e.n")

    @property
    def _made(self) -> str:
        """The statement that makes a function: some operations of an entry are replayed, in their order."""
        found = orphans.references(self.tables) if self.replication.both_ways else []
        within = "s.seq > since AND s.seq <= upto"
        body = f"""
{COLUMNS_FIRST}
DECLARE
  mine record; r record; entry bigint; concord_began bigint; concord_last bigint; n bigint; converted bigint := 0;
  orphaned boolean := false; {appended.VARIABLES}
  {variables(self.tables)}
BEGIN
  SELECT * INTO STRICT mine FROM {ENTRIES} e WHERE e.number = asked;
  entry := mine.number; concord_began := mine.seq; concord_last := mine.last; {appended.entered("mine")}
  FOR r IN {operations(self.tables, within)} LOOP
    IF r.place >= 0 THEN
      CASE r.place{"".join(cases(self.tables, self.replication))}
      END CASE;
    END IF;
  END LOOP;
  IF ends THEN
    orphaned := true; -- parts have forgotten
    {orphans.refused(found, compared.CONFLICT)}
  END IF;
  {ended(self.level)}
  RETURN {counted(self.tables)};
END"""
        head = "pg_temp.concord_hooked(asked bigint, since bigint, upto bigint, ends boolean) RETURNS jsonb"
        return f"CREATE OR REPLACE FUNCTION {head} LANGUAGE plpgsql AS {literal(body)}"
