"""`concord.replay` at the subscriber: how far each replication has come, written in each entry's own transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from concord.databases.contract.last_entry import LastEntry
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import foreign_epoch
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.own_schema import SCHEMA
from concord.jobs.replication import configured_name
from concord.messages.errors import HistoryLost, LeaseLost, NotInitialized, SubscriberInvalid

STATEMENTS = [
    # Each entry updates its row: room in the page keeps the updates off the index.
    """
CREATE TABLE IF NOT EXISTS concord.replay (
  replication text PRIMARY KEY,
  publisher text NOT NULL,
  level bigint,
  level_at timestamptz,
  entries bigint NOT NULL DEFAULT 0,
  conversions bigint NOT NULL DEFAULT 0,
  epoch bigint NOT NULL) WITH (fillfactor = 10)""",
    # Never replayed, since a person said so (S2-22); `mended_at`: the tables were copied anew, or found equal.
    """
CREATE TABLE IF NOT EXISTS concord.skipped (
  replication text NOT NULL,
  number bigint NOT NULL,
  reason text NOT NULL,
  by text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tables text[] NOT NULL,
  operations jsonb NOT NULL,
  mended_at timestamptz,
  PRIMARY KEY (replication, number))""",
    # The columns and rows that its copy holds; NULL: all.
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS scope text",
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS settled_at timestamptz,"
    " ADD COLUMN IF NOT EXISTS valid boolean NOT NULL DEFAULT true, ADD COLUMN IF NOT EXISTS reason text",
    # Operations of the largest entry since its copy.
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS largest bigint NOT NULL DEFAULT 0",
    # Keys of which a person has decided whose row stands (S2-21).
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS decided jsonb",
    # Why a conflict asks to copy the subscriber anew (S3-21): at the publisher, which decided it.
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS reinitialize text",
    # The tables that it has followed since their copy; NULL: nobody has taken them down yet.
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS tables text[]",
    # The publisher's columns (`known_columns`); NULL: nobody has taken them down yet.
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS columns jsonb",
    # The number of the last entry, which was committed at `level_at`, or of the copy; NULL: it is not known.
    "ALTER TABLE concord.replay ADD COLUMN IF NOT EXISTS last_entry bigint",
]


@dataclass(frozen=True, slots=True)
class Level:
    """One replication's row."""

    replication: str
    publisher: str
    epoch: int
    site: str
    scope: str | None = None  #: of the columns and rows that travel
    copies_tables: bool = False  #: a table can be copied without the others
    copied: frozenset[str] = frozenset()  #: tables that are being copied now, alone

    def remedy(self, tables: Collection[str]) -> str:
        """Which copy brings back these tables, by their names in the replication set."""
        again = f"run the replication's initialize__{configured_name(self.replication)} with `replace`"
        listed = ", ".join(sorted({*tables, *self.copied}))
        return f"{again} and `tables: [{listed}]`" if self.copies_tables else again

    @property
    def _named(self) -> str:
        return f"replication = {literal(self.replication)}"

    @property
    def mine(self) -> str:
        return f"{self._named} AND epoch = {self.epoch}"

    def fence(self, connection: Connection) -> None:
        """From here on no older run's entry commits. Raises LeaseLost when a newer run was here, ClockSkew when no
        run can have been."""
        taken = run(
            connection,
            "INSERT INTO concord.replay AS r (replication, publisher, epoch)"
            f" VALUES ({literal(self.replication)}, {literal(self.publisher)}, {self.epoch})"
            " ON CONFLICT (replication) DO UPDATE SET epoch = excluded.epoch WHERE r.epoch <= excluded.epoch",
        )
        if not taken:
            foreign_epoch.refuse(connection, "replay", "replication", self.replication, self.epoch, self.site)
            raise self.lost

    def read(self, connection: Connection) -> int:
        """The number of the last entry that was replayed. Raises NotInitialized or LeaseLost."""
        found = rows(connection, f"SELECT level, publisher, scope FROM concord.replay WHERE {self.mine}")
        if not found:
            raise self.lost
        return self._begun(*found[0])

    def reached(self, connection: Connection, tables: Mapping[str, str]) -> int:
        """The same for whoever replays nothing: runs go on beside it.

        Raises NotInitialized, SubscriberInvalid, or HistoryLost where one of the tables was never copied.
        """
        found = rows(connection, f"SELECT level, publisher, scope FROM concord.replay WHERE {self._named}")
        level = self._begun(*(found[0] if found else (None, None, None)))
        self.refuse_invalid(connection)
        self._known(connection, tables)
        return level

    def _begun(self, level: int | None, publisher: str | None, scope: str | None) -> int:
        if level is None or publisher != self.publisher:
            raise NotInitialized(
                f"{self.site}: {self.replication} was never initialized from {self.publisher};"
                f" run the replication's initialize__{configured_name(self.replication)}"
            )
        if scope != self.scope:
            raise NotInitialized(
                f"{self.site}: {self.replication} carries other columns or rows than when it was initialized; run its"
                f" initialize__{configured_name(self.replication)} with `replace`"
            )
        return int(level)

    def entry(self, entry: str) -> str:
        """An entry's first statement, from its staged row: the level, the fence and the counts in one."""
        return (
            f"UPDATE concord.replay SET level = {entry}.number, level_at = {entry}.at,"
            f" last_entry = {entry}.number, entries = entries + 1,"
            f" largest = greatest(largest, {entry}.size) WHERE {self.mine}"
        )

    def converted(self, number: str) -> str:
        return f"UPDATE concord.replay SET conversions = conversions + {number} WHERE {self.mine}"

    def ask_anew(self, entry: str) -> str:
        """An entry conflicts, and asks to copy the subscriber anew; the first one says why."""
        why = f"'entry ' || {entry} || ' conflicted at ' || date_trunc('second', now())"
        return f"UPDATE concord.replay SET reinitialize = coalesce(reinitialize, {why}) WHERE {self.mine}"

    def asked_anew(self, connection: Connection) -> str | None:
        """Why the subscriber is to be copied anew; None: it need not."""
        found = rows(connection, f"SELECT reinitialize FROM concord.replay WHERE {self.mine}")
        return found[0][0] if found else None

    def move(self, connection: Connection, level: int, at: datetime | None) -> None:
        """Without an entry: where the publisher's log ended at that moment. Raises LeaseLost."""
        settled = "" if at is None else f", settled_at = {literal(at.isoformat())}"
        self.change(connection, f"level = greatest(level, {level}){settled}")

    def begin(
        self, connection: Connection, level: int, tables: Collection[str], columns: Mapping[str, Any]
    ) -> None:
        """The copy of these tables stands at this level, whatever was before. Raises LeaseLost."""
        scope = "NULL" if self.scope is None else literal(self.scope)
        stands = f"level = {level}, publisher = {literal(self.publisher)}, scope = {scope}"
        self.change(
            connection,
            f"{stands}, settled_at = now(), valid = true, reason = NULL, largest = 0, decided = NULL,"
            f" last_entry = {level}, level_at = NULL,"
            f" reinitialize = NULL, tables = {_listed(tables)}, columns = {literal(json.dumps(columns))}",
        )
        self._mend(connection, "true")

    def copied_at(
        self, connection: Connection, level: int, tables: Collection[str], columns: Mapping[str, Any]
    ) -> None:
        """Some tables were copied at this level, which all others have reached: it follows them all.

        Entries of the copied tables alone may be in the log before it. `settled_at` does not become now: users have
        written since the snapshot, while the others were replayed. Raises LeaseLost.
        """
        self.change(
            connection,
            f"level = {level}, settled_at = greatest(settled_at, level_at), last_entry = {level}, level_at = NULL,"
            f" tables = {_listed(tables)}, columns = {literal(json.dumps(columns))}",
        )
        self.mend(connection, self.copied, level)

    def mend(self, connection: Connection, tables: Collection[str], level: int) -> None:
        """These tables were found equal, in a state that holds all entries up to the level (T17)."""
        self._mend(connection, f"number <= {level} AND tables <@ {_listed(tables)}")

    def _mend(self, connection: Connection, which: str) -> None:
        open_ones = f"{self._named} AND mended_at IS NULL"
        run(connection, f"UPDATE concord.skipped SET mended_at = now() WHERE {open_ones} AND {which}")

    def invalidate(self, connection: Connection, reason: str) -> None:
        """Until it begins again (S4-124). Raises LeaseLost."""
        self.change(connection, f"valid = false, reason = {literal(reason)}")

    def change(self, connection: Connection, changed: str) -> None:
        """Of its row `r`. Raises LeaseLost."""
        if not run(connection, f"UPDATE concord.replay r SET {changed} WHERE {self.mine}"):
            raise self.lost

    def refuse_invalid(self, connection: Connection) -> None:
        """Raises SubscriberInvalid."""
        if found := rows(connection, f"SELECT reason FROM concord.replay WHERE {self._named} AND NOT valid"):
            name = configured_name(self.replication)
            raise SubscriberInvalid(
                f"{self.site}: {name} is no longer valid, it was {found[0][0]};"
                f" run the replication's initialize__{name}"
            )

    def refuse_uncopied(self, connection: Connection, tables: Mapping[str, str]) -> None:
        """Changes of a table that was not copied find no rows here. One that has left is forgotten.

        `tables`: by all that makes it this one, each one's name. Raises HistoryLost or LeaseLost.
        """
        known = self._known(connection, tables)
        if known is None or known != set(tables):
            self.change(connection, f"tables = {_listed(tables)}")

    def _known(self, connection: Connection, tables: Mapping[str, str]) -> set[str] | None:
        """Those that it has followed so far; None: nobody has taken them down. Raises HistoryLost."""
        [(known,)] = rows(connection, f"SELECT tables FROM concord.replay WHERE {self._named}")
        if known is not None and (new := sorted(set(tables) - set(known))):
            uncopied = self._uncopied(new, set(map(_bare, known)))
            raise HistoryLost(f"{uncopied}; {self.remedy([tables[each] for each in new])}")
        return None if known is None else set(known)

    def _uncopied(self, new: Sequence[str], known: Collection[str]) -> str:
        """Tables that have no copy here, or a copy of another table, or one that lacks changes."""
        name, listed = configured_name(self.replication), ", ".join(each.partition(" ")[2] for each in new)
        wrong = f"has other tables than when it was initialized, or one was made anew at {self.publisher}"
        if all(_bare(each) in known or f" {SCHEMA}." in each for each in new):
            wrong = f"lacks changes that users of {self.publisher} made while nothing captured them"
        return f"{self.site}: {name} {wrong} ({listed})"

    def current_at(self, connection: Connection) -> datetime | None:
        """All that was committed before is here."""
        found = rows(
            connection, f"SELECT greatest(level_at, settled_at) FROM concord.replay WHERE {self.mine}"
        )
        return found[0][0] if found else None

    def last_entry(self, connection: Connection) -> LastEntry | None:
        """The last one that was replayed, or the copy; None where that is not known."""
        found = rows(
            connection,
            f"SELECT last_entry, level_at FROM concord.replay WHERE {self._named} AND last_entry IS NOT NULL",
        )
        return LastEntry(*found[0]) if found else None

    @property
    def lost(self) -> LeaseLost:
        return LeaseLost(
            f"{self.site}: a newer run of {self.replication} has taken over; nothing more was written"
        )


def _bare(identity: str) -> str:
    """A table's, whatever interrupted its capture."""
    oid, _, name = identity.partition(" ")
    return f"{oid.partition(':')[0]} {name}"


def _listed(texts: Collection[str]) -> str:
    return f"ARRAY[{', '.join(map(literal, sorted(texts)))}]::text[]"
