"""Staging: where executors write, and nothing else reads but the write step (F57)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import psycopg

from concord.databases.contract.quoting import literal, qualified
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.own_schema import STAGING
from concord.databases.postgresql.rows.shape import Shape

#: Beside the row and its version: what Spark decided, against which present version, and which attempt wrote it.
DECISION_TYPES = {
    "origin": "text",
    "changed_at": "int8",
    "derived": "int4",
    "vector": "text",
    "deleted": "bool",
    "born": "bool",
    "out_of_scope": "bool",
    "verdict": "text",
    "resolver": "text",
    "reason": "text",
    "against": "text",
    "attempt": "int8",
}

#: How long to wait for a table that a stopped executor may hold.
PATIENCE = "5s"

#: The same where that has been waited for already.
AT_ONCE = "50ms"

#: In place of a task attempt: rows that had waited at the target, and are tried again.
RETRIED = -1


@dataclass(frozen=True, slots=True)
class Staged:
    """One table's staged rows: where they are, and which task attempts are to be believed."""

    shape: Shape
    relation: str
    attempts: Sequence[int] = ()
    rows: int = 0
    retried: int = 0  #: how many of them had waited
    condition: str = ""  #: only the rows `s` for which this holds

    @property
    def sql(self) -> str:
        return qualified(STAGING, self.relation)

    def believing(self, attempts: Sequence[int], rows: int) -> Staged:
        """The same place, counting only what these task attempts wrote (F57)."""
        return replace(self, attempts=tuple(attempts), rows=rows)

    @property
    def version_types(self) -> Mapping[str, str]:
        """The columns beside the row's own: name → type. A vector that was relayed need not be read again."""
        vector = "jsonb" if self.shape.is_relayed else "text"
        return {**DECISION_TYPES, "vector": vector, **dict.fromkeys(self.shape.staged_texts, "text")}

    @property
    def types(self) -> Mapping[str, str]:
        columns = {self.shape.alias(column): column.type.staging for column in self.shape.columns}
        return {**columns, **self.version_types}

    @property
    def typed(self) -> str:
        """A subquery over the staged rows, their keys back in their own types.

        The other columns stay as they travelled until they are written: a deleted row brings NULL for each,
        which a domain may refuse.
        """
        return self._typed()

    @property
    def placed(self) -> str:
        """The same, each with its place in the relation (`concord_place`)."""
        return self._typed(", ctid AS concord_place")

    def _typed(self, more: str = "") -> str:
        key = [f"{c.type.incoming(self.shape.alias(c))} AS {c.sql}" for c in self.shape.key]
        columns = key + [f"{self.shape.alias(c)} AS {c.sql}" for c in self.shape.rest]
        version = [
            f"{name} AS concord_{name}" for name in DECISION_TYPES if name not in ("vector", "attempt")
        ]
        version += [f"{name}::jsonb AS concord_{name}" for name in self.shape.staged_texts]
        believed = ", ".join(map(str, self.attempts))
        every = (
            f"(SELECT {', '.join(columns)}, {', '.join(version)}, vector::jsonb AS concord_vector,"
            f" {'deleted OR out_of_scope' if self.shape.marks is None else 'false'} AS concord_gone,"
            f" attempt = {RETRIED} AS concord_retried{more}"
            f" FROM {self.sql} WHERE attempt IN ({believed}))"
        )
        return f"(SELECT * FROM {every} s WHERE {self.condition})" if self.condition else every

    def only(self, condition: str, rows: int) -> Staged:
        """Some of the rows: those `s` for which the condition holds as well."""
        both = f"({self.condition}) AND ({condition})" if self.condition else condition
        return replace(self, condition=both, rows=rows)


def staging_name(transmission: str, ordinal: int) -> str:
    """Named by transmission, so that what a dead run left behind can be told from what is in use."""
    return f"t_{transmission}_{ordinal}"


def create(connection: Connection, staged: Staged) -> None:
    """An unlogged table: it need not survive a crash, since the run that made it would not either."""
    columns = ", ".join(f"{name} {kind}" for name, kind in staged.types.items())
    run(connection, f"CREATE UNLOGGED TABLE {staged.sql} ({columns}) WITH (autovacuum_enabled = false)")


def as_text(connection: Connection, staged: Staged) -> Staged:
    """The same rows as if they had come through Arrow: their types need not hold what is to stand beside them."""
    text = replace(staged, shape=staged.shape.through_arrow)
    changed = [name for name, kind in staged.types.items() if kind != text.types[name]]
    if changed:
        run(
            connection, f"ALTER TABLE {staged.sql} {', '.join(f'ALTER {name} TYPE text' for name in changed)}"
        )
    return text


def drop_all(connection: Connection, transmission: str) -> None:
    """Drop what the transmission staged. A stopped executor may hold one of them: the others go all the same."""
    pattern = staging_name(transmission, 0).removesuffix("0").replace("_", "\\_") + "%"
    staged = (
        f"SELECT relname FROM pg_class WHERE relnamespace = {literal(STAGING)}::regnamespace"
        f" AND relkind = 'r' AND relname LIKE {literal(pattern)}"
    )
    drop = f"""
DO $$
DECLARE
  staged name;
BEGIN
  FOR staged IN {staged} LOOP
    EXECUTE format('DROP TABLE IF EXISTS %I.%I', {literal(STAGING)}, staged);
  END LOOP;
END $$"""
    try:
        run(connection, f"SET LOCAL lock_timeout = '{PATIENCE}'", drop)
    except psycopg.Error:
        for (name,) in rows(connection, staged):
            with suppress(psycopg.errors.LockNotAvailable):
                _drop(connection, name, AT_ONCE)


def orphans(connection: Connection, alive: Sequence[str]) -> list[str]:
    """Staging tables of transmissions that are no longer alive, oldest first."""
    found = rows(
        connection,
        f"SELECT relname FROM pg_class WHERE relnamespace = {literal(STAGING)}::regnamespace AND relkind = 'r'"
        " ORDER BY oid",
    )
    return [name for (name,) in found if name.startswith("t_") and name.split("_")[1] not in alive]


def drop_orphans(connection: Connection, names: Sequence[str]) -> None:
    """Drop the named staging tables, whichever of them still exist. Raises what stops one; those before it are gone."""
    for name in names:
        _drop(connection, name, PATIENCE)


def _drop(connection: Connection, name: str, patience: str) -> None:
    drop = f"DROP TABLE IF EXISTS {qualified(STAGING, name)}"
    run(connection, f"SET LOCAL lock_timeout = '{patience}'", drop)
