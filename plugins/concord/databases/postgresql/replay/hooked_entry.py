"""Entries whose tables have hooks: each in one transaction, its operations in their order (S3-08, S3-13).

Before some operations are replayed, the hooks of their tables see them, each with the row that it meets. No two of
these touch one row, so what a hook is shown is there. Entries without such tables go the ordinary way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.hooks import added_rows
from concord.databases.postgresql.replay import appended, compared, orphans
from concord.databases.postgresql.replay.hooked_table import HookedTable, Operation
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.procedure import (
    COLUMNS_FIRST,
    cases,
    counted,
    ended,
    operations,
    variables,
)
from concord.jobs.replication import ReplicationDefinition
from concord.rules.hook_function import BATCH, AboutToBeWritten, AsksHook, Verdict, Word

#: The number of an operation that a hook refuses, as of errors.
REFUSED_BY_HOOK = "CNC08"

Effects = Counter[tuple[str, str]]  #: by table and effect


class RefusedByHook(Exception):
    """A hook refuses an operation, and with it the entry: which one, and why, for people."""

    def __init__(self, operation: str, why: str) -> None:
        self.operation, self.why = operation, why
        super().__init__(why)


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
